"""All ways out of this version. A new one is a file of its own and a line here.

What owners are told inside the application is no channel: the relay writes it in its own transaction, exactly once.
"""

from __future__ import annotations

from octavo.core.settings import Settings
from octavo.deliver.contract import Channels
from octavo.deliver.mail import MailChannel, MailServer
from octavo.deliver.slack import SlackChannel
from octavo.deliver.webhook import WebhookChannel
from octavo.fetch import GuardedClient


def known_channels(settings: Settings, client: GuardedClient | None = None) -> Channels:
    """Without a client addresses can be checked, and only mail can be sent."""
    allow = frozenset(settings.fetch_allow)
    seconds = settings.delivery_seconds
    smtp = settings.smtp_url.get_secret_value() if settings.smtp_url else None
    return Channels(
        [
            WebhookChannel(client, allow, seconds),
            MailChannel(MailServer.from_url(smtp) if smtp else None, settings.mail_from, seconds),
            SlackChannel(client, allow, seconds),
        ]
    )
