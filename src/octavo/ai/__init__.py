"""Calls AI models for typed answers, within budgets and rate limits, and falls back to offline rules (`local`)."""
