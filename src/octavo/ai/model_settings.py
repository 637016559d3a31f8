"""Model settings that an administrator changes while Octavo runs.

They are stored in the database. Settings from the environment or the settings file take precedence over them. API keys
are encrypted with a key that is not in the database, so a copy or a backup of the database does not reveal them.
"""

from __future__ import annotations

import os
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Self, cast, get_args
from uuid import UUID

from psycopg.types.json import Jsonb
from pydantic import SecretStr

from octavo.ai.calls import LOCAL
from octavo.ai.models import EMBEDDING_MODELS, Model, ModelChain, Price, Prices, model_chain, parse_model
from octavo.core.errors import BadInput, BadSetting
from octavo.core.settings import PROVIDERS, Settings, variable_name
from octavo.core.types import JSON, new_id
from octavo.database import Connection, fetch_rows, load_queries
from octavo.database.embedded import DataFolder
from octavo.records.account import KeyState, ModelProvider, ModelsInForce, RemoteProvider, TaskGroup, TaskModels

QUERIES = load_queries("model_settings")
REMOTE: tuple[RemoteProvider, ...] = get_args(RemoteProvider)
# The values of a provider that can be changed. Together with the provider's name they are names of settings.
VALUES: dict[RemoteProvider, tuple[str, ...]] = {
    "gemini": ("key", "url", "model", "price"),
    "openai": ("key", "url", "model", "price"),
    "anthropic": ("key", "url", "model", "price"),
    "mistral": ("key", "url", "model", "price"),
    "azure": ("key", "url", "model", "price"),
    "vertex": ("key", "url", "model", "price"),
    "bedrock": ("key", "url", "model", "price"),
    "compatible": ("key", "url", "model", "context", "price"),
}
# Prices are entered per provider, but the setting is one list for all models.
PRICES: dict[RemoteProvider, str] = {name: f"{name}_price" for name in REMOTE}
TASK_GROUPS: dict[TaskGroup, tuple[str, ...]] = {
    "describe": ("classify_document", "enrich_chunks", "classify_image"),
    "read": ("extract_pages", "clean_markdown"),
    "connect": ("judge_contradictions", "explain_bridges"),
    "answer": ("answer_question", "rewrite_question"),
    "analyse": ("answer_segment", "consolidate_answers"),
    "convert": ("extract_fields",),
}
ORDER, TASKS, EMBEDDING = "providers", "task_models", "embedding_model"
SHOWN_CHARACTERS = 4
# The end of a shorter key would reveal too much of it.
LEAST_CHARACTERS = 12
PRIVATE_FILE = 0o600


class FixedSetting(BadInput):
    """This value is defined by a setting and cannot be changed here."""

    code = "FIXED_SETTING"
    status = 409


class KeyNeeded(BadInput):
    """Enter the API key again, because the URL has changed."""

    code = "KEY_NEEDED"
    status = 409


class NoSecretKey(BadInput):
    """Keys and passwords cannot be encrypted. Set the same OCTAVO_SECRET_KEY on all machines that use this database."""

    code = "NO_SECRET_KEY"
    status = 409


# Encryption --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SealedKey:
    """An encrypted API key. `end` contains the key's last characters. It is empty if the key is short."""

    token: str
    end: str


class KeySeal:
    """Encrypts and decrypts API keys with the secret of this installation."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def seal(self, key: str) -> SealedKey:
        from cryptography.fernet import Fernet

        end = key[-SHOWN_CHARACTERS:] if len(key) >= LEAST_CHARACTERS else ""
        return SealedKey(Fernet(self._secret(create=True) or b"").encrypt(key.encode()).decode(), end)

    def open(self, sealed: SealedKey) -> str | None:
        """Decrypt an API key. Returns None if it was encrypted with a different secret."""
        from cryptography.fernet import Fernet, InvalidToken

        secret = self._secret(create=False)
        if secret is None:
            return None
        try:
            return Fernet(secret).decrypt(sealed.token.encode()).decode()
        except InvalidToken:
            return None

    def _secret(self, *, create: bool) -> bytes | None:
        if given := self._settings.secret_key:
            return urlsafe_b64encode(sha256(given.get_secret_value().encode()).digest())
        if self._settings.database_url:
            if create:
                raise NoSecretKey
            return None
        return _key_file(DataFolder(self._settings.data_dir).secrets / "model-keys", create=create)


def _key_file(file: Path, *, create: bool) -> bytes | None:
    """Read the key file, or return None if it does not exist. If `create` is true, a missing file is created first."""
    if not file.exists():
        if not create:
            return None
        _write_once(file, urlsafe_b64encode(os.urandom(32)))
    return file.read_bytes()


def _write_once(file: Path, content: bytes) -> None:
    """Atomically write a file that only the current system user can read.

    If several processes write it, the first one wins.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}-{new_id()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    with suppress(FileExistsError):
        os.link(draft, file)
    draft.unlink()


# Stored settings ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoredSettings:
    """The stored model settings by name.

    `sealed` contains the encrypted API keys, and `plain` all other settings. In `plain`, `task_models` maps groups of
    tasks to models.
    """

    version: int = 0
    plain: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sealed: Mapping[str, SealedKey] = field(default_factory=dict[str, SealedKey])

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        return cls(row["version"], row["plain"], {name: SealedKey(**one) for name, one in row["sealed"].items()})

    @property
    def order(self) -> list[str]:
        return list(self.plain.get(ORDER, ()))

    @property
    def groups(self) -> dict[str, str]:
        return dict(self.plain.get(TASKS, {}))

    def with_plain(self, changes: Mapping[str, JSON]) -> Self:
        """Return a copy with these changes to the unencrypted settings. None removes a setting."""
        kept = {name: value for name, value in {**self.plain, **changes}.items() if value is not None}
        return replace(self, plain=kept)


async def read_stored(connection: Connection) -> StoredSettings:
    rows = await fetch_rows(connection, QUERIES.read, {})
    return StoredSettings.of(rows[0]) if rows else StoredSettings()


async def read_version(connection: Connection) -> int:
    rows = await fetch_rows(connection, QUERIES.version, {})
    return rows[0]["version"] if rows else 0


async def lock_stored(connection: Connection) -> StoredSettings:
    """Read the stored settings. Until the transaction ends, no other transaction can change them."""
    await connection.execute(QUERIES.lock)
    return await read_stored(connection)


async def save_stored(connection: Connection, stored: StoredSettings, admin: UUID, detail: Mapping[str, JSON]) -> None:
    """Save the settings, and record an event with `detail`, which must not contain API keys."""
    sealed = {name: {"token": one.token, "end": one.end} for name, one in stored.sealed.items()}
    await connection.execute(QUERIES.save, {"plain": Jsonb(dict(stored.plain)), "sealed": Jsonb(sealed)})
    await connection.execute(QUERIES.record_change, {"owner": admin, "detail": Jsonb(dict(detail))})


# The settings in force ---------------------------------------------------------------------------------------------


def is_fixed(base: Settings, name: str) -> bool:
    """Whether the environment or the settings file defines this setting, so that administrators cannot change it."""
    return name in base.model_fields_set


def has_fixed_price(base: Settings, model: object) -> bool:
    return any(one.partition("=")[0] == model for one in base.prices)


def apply(base: Settings, stored: StoredSettings) -> Settings:
    """Return the effective settings. Settings that `base` defines explicitly take precedence over stored settings.

    Providers whose required values are missing, and tasks that use such a provider, are left out.
    """
    changes: dict[str, Any] = {
        name: value for name, value in stored.plain.items() if name not in {ORDER, TASKS, EMBEDDING, *PRICES.values()}
    }
    seal = KeySeal(base)
    for name, sealed in stored.sealed.items():
        if key := seal.open(sealed):
            changes[name] = SecretStr(key)
    changes = {name: value for name, value in changes.items() if not is_fixed(base, name)}
    merged = base.model_copy(update=changes)
    merged = merged.model_copy(update={"prices": (*_stored_prices(stored, merged), *base.prices)})
    if is_fixed(base, ORDER) or not stored.order:
        return merged
    usable = tuple(name for name in stored.order if all(getattr(merged, need) for need in PROVIDERS[name]))
    chosen: dict[str, Any] = {ORDER: usable or (LOCAL,)}
    if not is_fixed(base, TASKS):
        chosen[TASKS] = tuple(_task_models(stored.groups, usable))
    if not is_fixed(base, EMBEDDING):
        wanted = str(stored.plain.get(EMBEDDING, LOCAL))
        chosen[EMBEDDING] = wanted if parse_model(wanted).provider in usable else LOCAL
    return merged.model_copy(update=chosen)


def _stored_prices(stored: StoredSettings, current: Settings) -> Iterable[str]:
    for name, setting in PRICES.items():
        if setting in stored.plain and (model := getattr(current, f"{name}_model")):
            yield f"{model}={stored.plain[setting]}"


def _task_models(groups: Mapping[str, str], usable: Iterable[str]) -> Iterable[str]:
    known = {*usable, LOCAL}
    for group, model in groups.items():
        if parse_model(model).provider in known:
            for task in TASK_GROUPS.get(cast("TaskGroup", group), ()):
                yield f"{task}={model}"


# Changes -----------------------------------------------------------------------------------------------------------


def change_provider(
    base: Settings, stored: StoredSettings, name: RemoteProvider, changes: Mapping[str, JSON]
) -> StoredSettings:
    """Return the stored settings with the changed values of a provider. The provider is also enabled.

    `changes` maps names in `VALUES` to new values. None restores the default; for the API key, it deletes the stored
    key.
    """
    for value in changes:
        refuse_fixed(base, f"{name}_{value}")
    if "price" in changes and has_fixed_price(
        base, changes.get("model") or getattr(apply(base, stored), f"{name}_model")
    ):
        raise FixedSetting(f"It is set by {variable_name('prices')}.")
    _protect_key(base, stored, name, changes)
    sealed = dict(stored.sealed)
    if "key" in changes:
        sealed.pop(f"{name}_key", None)
        if key := changes["key"]:
            sealed[f"{name}_key"] = KeySeal(base).seal(str(key))
    plain: dict[str, JSON] = {f"{name}_{value}": given for value, given in changes.items() if value != "key"}
    if {"model", "url"} & changes.keys():  # the earlier price was that of another model
        plain.setdefault(PRICES[name], None)
    changed = replace(stored.with_plain(plain), sealed=sealed)
    if is_fixed(base, ORDER):
        return changed
    order = stored.order or list(base.providers)
    return changed if name in order else changed.with_plain({ORDER: [name, *order]})


def _protect_key(base: Settings, stored: StoredSettings, name: RemoteProvider, changes: Mapping[str, JSON]) -> None:
    """Refuse a new URL without a new API key. Otherwise, the stored key would be sent to the new server."""
    usual = type(base).model_fields[f"{name}_url"].default
    if "url" not in changes or (changes["url"] or usual) == (stored.plain.get(f"{name}_url") or usual):
        return
    refuse_fixed(base, f"{name}_key")
    if f"{name}_key" in stored.sealed and "key" not in changes:
        raise KeyNeeded


def remove_provider(base: Settings, stored: StoredSettings, name: RemoteProvider) -> StoredSettings:
    """Return the stored settings without a provider, its API key, and the settings that select its models."""
    refuse_fixed(base, ORDER)
    names = {f"{name}_{value}" for value in VALUES[name]}
    order = [one for one in stored.order or list(base.providers) if one != name] or [LOCAL]
    groups = {group: model for group, model in stored.groups.items() if parse_model(model).provider != name}
    changed = stored.with_plain({**dict.fromkeys(names), ORDER: cast("JSON", order), TASKS: cast("JSON", groups)})
    if parse_model(str(stored.plain.get(EMBEDDING, LOCAL))).provider == name:
        changed = changed.with_plain({EMBEDDING: None})
    return replace(changed, sealed={key: one for key, one in stored.sealed.items() if key not in names})


def refuse_fixed(base: Settings, name: str) -> None:
    if is_fixed(base, name):
        raise FixedSetting(f"It is set by {variable_name(name)}.")


# What people see ---------------------------------------------------------------------------------------------------


def describe(base: Settings, stored: StoredSettings, *, admin: bool) -> ModelsInForce:
    """Describe the current settings, without costs. Only administrators see URLs and the last characters of keys."""
    current, problem = apply(base, stored), None
    try:
        chain = model_chain(current)
    except BadSetting as error:
        chain, problem = model_chain(base), error.line
    return ModelsInForce(
        order=list(current.providers),
        providers=[_provider(base, stored, current, name, admin=admin) for name in REMOTE],
        tasks=[_group(group, chain, stored, current) for group in TASK_GROUPS],
        embedding=str(chain.embedding),
        fixed_by=_fixed(base, {"order": ORDER, "tasks": TASKS, "embedding": EMBEDDING}),
        problem=problem,
        unpriced=list(map(str, Prices.of(current).missing(chain))),
        spent_usd=0.0,
        everybody_usd=None,
    )


def _provider(
    base: Settings, stored: StoredSettings, current: Settings, name: RemoteProvider, *, admin: bool
) -> ModelProvider:
    key_name = f"{name}_key"
    key: SecretStr | None = getattr(current, key_name)
    sealed = None if is_fixed(base, key_name) else stored.sealed.get(key_name)
    state: KeyState = "set" if key else "unreadable" if sealed else "none"
    return ModelProvider(
        name=name,
        in_use=name in current.providers,
        model=getattr(current, f"{name}_model"),
        url=getattr(current, f"{name}_url") if admin else None,
        context=current.compatible_context if name == "compatible" else None,
        price=_show_price(Prices.of(current).find(Model(name, getattr(current, f"{name}_model") or ""))),
        key=state,
        key_end=(sealed.end or None) if sealed and key and admin else None,
        fixed_by=_fixed_values(base, current, name) if admin else {},
    )


def _show_price(price: Price | None) -> str | None:
    return f"{price.input.normalize():f}/{price.output.normalize():f}" if price else None


def _fixed_values(base: Settings, current: Settings, name: RemoteProvider) -> dict[str, str]:
    """Return the values that administrators cannot change, and the environment variables that define them.

    If the API key is fixed, the URL is fixed too, so that the key cannot be sent to another server.
    """
    fixed = _fixed(base, {value: f"{name}_{value}" for value in VALUES[name]})
    if has_fixed_price(base, getattr(current, f"{name}_model")):
        fixed["price"] = variable_name("prices")
    return {**fixed, "url": fixed.get("url", fixed["key"])} if "key" in fixed else fixed


def _group(group: TaskGroup, chain: ModelChain, stored: StoredSettings, current: Settings) -> TaskModels:
    tasks = TASK_GROUPS[group]
    models = list(map(str, chain.of(tasks[0])))
    chosen = stored.groups.get(group)
    is_set = chosen is not None and f"{tasks[0]}={chosen}" in current.task_models
    return TaskModels(group, models, is_set=is_set)


def _fixed(base: Settings, names: Mapping[str, str]) -> dict[str, str]:
    return {value: variable_name(name) for value, name in names.items() if is_fixed(base, name)}


def embedding_choices(current: ModelsInForce) -> list[str]:
    """List the embedding models to choose from: the one in use, `local`, and the defaults of the enabled providers."""
    names = [str(Model(name, EMBEDDING_MODELS[name])) for name in current.order if name in EMBEDDING_MODELS]
    return list(dict.fromkeys([current.embedding, *names, LOCAL]))
