"""Says which layers hold on this machine, from what a probe child found when it tried to break them."""

from __future__ import annotations

import platform
from collections.abc import Callable
from dataclasses import dataclass

from octavo.core.json import JSON
from octavo.sandbox import landlock, syscalls

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


_COVERS: dict[str, Callable[[], str]] = {
    "limits": lambda: "memory, CPU time, files and output",
    "environment": lambda: "empty",
    "capabilities": lambda: "none left",
    "no_new_privs": lambda: "no way to gain any",
    "landlock": lambda: landlock.describe(landlock.abi()),
    "seccomp": lambda: "no sockets, processes, programs, signals or writing",
}


def explain(found: JSON) -> Layers:
    """`found` maps each layer to what the probe could do in spite of it: nothing, if it holds."""
    if not isinstance(found, dict) or found.keys() != _COVERS.keys():
        raise TypeError(f"the probe answered {found!r}")
    return Layers(tuple(_layer(name, found[name]) for name in _COVERS))


def _layer(name: str, breaches: JSON) -> Layer:
    if breaches == []:
        return Layer(name, active=True, detail=_COVERS[name]())
    possible = ", ".join(map(str, breaches)) if isinstance(breaches, list) else str(breaches)
    return Layer(name, active=False, detail=f"{_why_missing(name)}; a parser could {possible}")


def _why_missing(name: str) -> str:
    if name == "seccomp" and platform.machine() not in syscalls.ARCHITECTURES:
        return f"not for {platform.machine()}"
    if name in {"landlock", "seccomp"}:
        return "not in this kernel"
    return "it does not hold"
