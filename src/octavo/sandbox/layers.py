"""Says which layers hold on this machine, from what a probe child found when it tried to break them."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass

from octavo.sandbox import landlock, syscalls
from octavo.sandbox.limits import JSON

PROBE = "octavo.sandbox.probe:try_everything"


@dataclass(frozen=True, slots=True)
class Layer:
    """`detail` says what it covers, or else why it is missing and what that leaves open."""

    name: str
    active: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Layers:
    """All layers, in the order in which a child puts them on."""

    layers: tuple[Layer, ...]

    @property
    def complete(self) -> bool:
        """Whether every layer holds."""
        return all(layer.active for layer in self.layers)

    @property
    def summary(self) -> str:
        """One line for the start-up message."""
        active = [layer.name for layer in self.layers if layer.active]
        missing = [f"{layer.name} ({layer.detail})" for layer in self.layers if not layer.active]
        line = f"Parsers are confined by {', '.join(active) or 'nothing'}"
        return f"{line}; missing: {'; '.join(missing)}" if missing else line


def _why_no_landlock() -> str:
    return (
        "this kernel has no Landlock: a parser could read the files of this user"
        if not landlock.abi()
        else ""
    )


def _why_no_seccomp() -> str:
    if platform.machine() not in syscalls.ARCHITECTURES:
        return f"no filter for {platform.machine()}: a parser could open sockets and start programs"
    return ""


_COVERS: dict[str, Callable[[], str]] = {
    "limits": lambda: "memory, CPU time, files and output",
    "environment": lambda: "empty",
    "capabilities": lambda: "none left",
    "no_new_privs": lambda: "no way to gain any",
    "landlock": lambda: landlock.describe(landlock.abi()),
    "seccomp": lambda: "no sockets, processes, programs, signals or writing",
}

_WHY_MISSING: dict[str, Callable[[], str]] = {"landlock": _why_no_landlock, "seccomp": _why_no_seccomp}


def explain(found: JSON) -> Layers:
    """`found` maps each layer to what the probe could do in spite of it: nothing, if it holds."""
    if not isinstance(found, dict) or found.keys() != _COVERS.keys():
        raise TypeError(f"the probe answered {found!r}")
    return Layers(tuple(_layer(name, found[name]) for name in _COVERS))


def _layer(name: str, breaches: JSON) -> Layer:
    if breaches == []:
        return Layer(name, active=True, detail=_COVERS[name]())
    reason = _WHY_MISSING[name]() if name in _WHY_MISSING else ""
    return Layer(name, active=False, detail=reason or f"a parser could: {breaches}")
