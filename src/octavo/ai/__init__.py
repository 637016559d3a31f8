"""Calls AI models and returns typed answers, within budgets and rate limits.

The provider `local` works offline and costs nothing.
"""
