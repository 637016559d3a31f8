"""What a fetch may take, and what it brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """`bytes` counts the body as it is after unpacking; `seconds` is for everything, redirects included."""

    bytes: int
    seconds: float
    redirects: int = 5


@dataclass(frozen=True, slots=True)
class Fetched:
    """An answer, whatever its status. `url` is where it came from in the end; names of headers are in lower case."""

    url: str
    status: int
    content_type: str
    headers: Mapping[str, str]
    body: bytes
