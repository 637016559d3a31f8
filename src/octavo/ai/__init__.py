"""Calls AI models and returns typed answers, within budgets and rate limits.

The `local` provider runs on this machine, sends no data and costs nothing.
"""
