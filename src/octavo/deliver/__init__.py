"""Sends events to recipients by webhook, mail or chat, and stores notifications for the application itself."""
