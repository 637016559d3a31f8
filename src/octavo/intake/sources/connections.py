"""The resources that readers need to connect to other servers, and the encrypted secrets of sources."""

from __future__ import annotations

import json
from dataclasses import dataclass

from octavo.ai.model_settings import KeySeal, SealedKey
from octavo.core.settings import Settings
from octavo.database import Database, load_queries
from octavo.fetch import GuardedClient
from octavo.intake.errors import BadSource
from octavo.intake.sources.reading import Source

QUERIES = load_queries("sources")


@dataclass(frozen=True, slots=True)
class SourceSecret:
    """The secrets of a source. For OAuth, the password is the refresh token."""

    password: str = ""
    client_secret: str | None = None


@dataclass(frozen=True, slots=True)
class Connections:
    """The HTTP client, the settings, and the database that contains the secrets of sources."""

    settings: Settings
    fetch: GuardedClient
    database: Database

    @property
    def allow(self) -> frozenset[str]:
        return frozenset(self.settings.fetch_allow)

    def open_secret(self, source: Source) -> SourceSecret:
        """Decrypt the secrets of a source."""
        return open_secret(self.settings, source.secret)

    async def replace_password(self, source: Source, secret: SourceSecret, password: str) -> None:
        """Store a new refresh token, unless somebody has changed the secret in the meantime."""
        new = seal_secret(self.settings, SourceSecret(password, secret.client_secret))
        async with self.database.transaction() as connection:
            values = {"source": source.id, "old": source.secret, "new": new}
            await connection.execute(QUERIES.replace_secret, values)


def open_secret(settings: Settings, sealed: str | None) -> SourceSecret:
    """Decrypt the secrets of a source."""
    if sealed is None:
        return SourceSecret()
    opened = KeySeal(settings).open(SealedKey(sealed, ""))
    if opened is None:
        raise BadSource("The password cannot be decrypted on this machine. Enter it again.")
    return SourceSecret(**json.loads(opened))


def seal_secret(settings: Settings, secret: SourceSecret) -> str:
    """Encrypt the secrets of a source, in the same way as the API keys of model providers."""
    given = {"password": secret.password, "client_secret": secret.client_secret}
    return KeySeal(settings).seal(json.dumps(given)).token
