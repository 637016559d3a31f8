"""Finds extensions: Python packages that add file formats, connection engines, file sources and channels to Octavo.

A package declares its extensions as entry points. Their names are read from the metadata of the installed packages;
the code of an extension is imported only by the process that uses it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

import structlog

log = structlog.get_logger()


class ExtensionKind(StrEnum):
    """The kind of feature that an extension adds. The value is the name of the entry point group."""

    FORMAT = "octavo.formats"
    ENGINE = "octavo.connections"
    SOURCE = "octavo.sources"
    CHANNEL = "octavo.channels"


@dataclass(frozen=True, slots=True)
class InstalledExtension:
    """An extension and the package that contains it."""

    kind: ExtensionKind
    name: str
    package: str
    version: str


def installed_extensions() -> list[InstalledExtension]:
    """List all installed extensions, by kind and name."""
    return [
        InstalledExtension(kind, name, point.dist.name, point.dist.version)
        for kind in ExtensionKind
        for name, point in _declared(kind).items()
        if point.dist
    ]


def extension_names(kind: ExtensionKind) -> list[str]:
    """Return the names of the installed extensions of a kind. Their code is not imported."""
    return list(_declared(kind))


def load_extension(kind: ExtensionKind, name: str) -> Any | None:  # noqa: ANN401 - what another package declares
    """Import an extension and return the object that its entry point refers to.

    Returns None if the extension is not installed or cannot be imported.
    """
    point = _declared(kind).get(name)
    return _load(point) if point else None


def load_extensions(kind: ExtensionKind) -> dict[str, Any]:
    """Import all extensions of a kind.

    Returns the objects that their entry points refer to, keyed by extension name. Extensions that cannot be imported
    are left out.
    """
    loaded = {name: _load(point) for name, point in _declared(kind).items()}
    return {name: found for name, found in loaded.items() if found is not None}


@cache
def _declared(kind: ExtensionKind) -> dict[str, EntryPoint]:
    """Return the entry points of a kind by name.

    If two packages use the same name, the package that is first in alphabetical order is used.
    """
    found = sorted(entry_points(group=kind), key=lambda point: (point.name, point.dist.name if point.dist else ""))
    declared: dict[str, EntryPoint] = {}
    for point in found:
        if declared.setdefault(point.name.lower(), point) is not point:
            log.warning("extension ignored, because another one has the same name", kind=str(kind), name=point.name)
    return declared


@cache
def _load(point: EntryPoint) -> Any | None:  # noqa: ANN401 - what another package declares
    """Import an entry point. If that fails, log the error and return None: a broken extension must not stop Octavo."""
    try:
        return point.load()
    except Exception:
        log.exception("extension cannot be imported", kind=point.group, name=point.name)
        return None
