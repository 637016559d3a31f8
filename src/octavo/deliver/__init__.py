"""Sends events to recipients by webhook, mail or chat, and stores notifications to show inside the application."""
