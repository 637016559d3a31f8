"""Sends events to recipients by webhook, mail or chat, and shows notifications inside the application."""
