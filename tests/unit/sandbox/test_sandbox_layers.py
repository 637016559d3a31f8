"""The start-up report: complete, or honest about what is missing."""

from __future__ import annotations

import pytest

from octavo.sandbox import JSON
from octavo.sandbox.kernel import describe_landlock
from octavo.sandbox.layers import explain

NAMES = ["limits", "environment", "capabilities", "no_new_privs", "mounts", "landlock", "seccomp"]


def found(**breaches: JSON) -> JSON:
    return {name: breaches.get(name, []) for name in NAMES}


def test_all_layers_hold() -> None:
    layers = explain(found())
    assert layers.complete
    assert layers.summary == f"Parsers are confined by {', '.join(NAMES)}"


def test_a_missing_layer_describes_the_risk() -> None:
    layers = explain(found(seccomp=["open a socket"]))
    assert not layers.complete
    assert "missing: seccomp (" in layers.summary
    assert "seccomp" not in layers.summary.split(";")[0]


def test_answer_of_another_shape_is_refused() -> None:
    with pytest.raises(TypeError):
        explain(["everything is fine"])


@pytest.mark.parametrize(
    ("version", "covered"),
    [
        (1, "ABI 1: files"),
        (3, "ABI 3: files"),
        (4, "ABI 4: files, TCP"),
        (6, "ABI 6: files, TCP, abstract sockets, signals"),
        (7, "ABI 7: files, TCP, abstract sockets, signals"),
    ],
)
def test_landlock_grew_over_time(version: int, covered: str) -> None:
    assert describe_landlock(version) == covered
