"""Sends mails with one-time links.

The mails are sent immediately and not by a job, because the links must not be stored.
"""

from __future__ import annotations

from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid

import structlog
from fastapi import Request

from octavo.core.errors import OctavoError
from octavo.database import read_clock
from octavo.deliver.channels import MailServer, as_mail_header, send_mail
from octavo.web.context.services import Services

log = structlog.get_logger()


def public_address(request: Request, services: Services, path: str) -> str:
    """Return the public address of a path. The Host header was checked before."""
    return f"{services.settings.public_url or str(request.base_url).rstrip('/')}{path}"


async def mail_link(services: Services, address: str, subject: str, text: str, link: str) -> bool:
    """Send a link by mail. Returns whether a mail server has accepted it."""
    settings = services.settings
    if settings.smtp_url is None:
        return False
    async with services.database.connection() as connection:
        now = await read_clock(connection)
    mail = EmailMessage(policy=SMTP)
    mail["From"] = as_mail_header(settings.mail_from, "Octavo")
    mail["Subject"], mail["Date"] = subject, format_datetime(now)
    mail["Message-ID"] = make_msgid(domain=settings.mail_from.rpartition("@")[2])
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"{text}\n\n{link}\n")
    server = MailServer.from_url(settings.smtp_url.get_secret_value())
    try:
        mail["To"] = as_mail_header(address)
        await send_mail(server, mail, settings.mail_from, address, seconds=settings.delivery_seconds)
    except OctavoError as error:
        log.warning("a link could not be mailed", code=error.code)
        return False
    return True
