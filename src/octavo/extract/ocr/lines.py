"""What an engine recognises: lines of text with their place."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.extract.contract import Box


@dataclass(frozen=True, slots=True)
class Line:
    """`box` is in the units of the page that it is on; `score` is how sure the engine is, from 0 to 1."""

    text: str
    box: Box
    score: float = 1.0

    @property
    def height(self) -> float:
        return self.box.bottom - self.box.top

    @property
    def width(self) -> float:
        return self.box.right - self.box.left

    @property
    def middle(self) -> float:
        return (self.box.top + self.box.bottom) / 2


def around(lines: list[Line]) -> Box:
    """The smallest box that holds all of these."""
    return Box(
        min(line.box.left for line in lines),
        min(line.box.top for line in lines),
        max(line.box.right for line in lines),
        max(line.box.bottom for line in lines),
    )
