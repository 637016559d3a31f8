"""What all of our providers have in common: a script of troubles, good answers to any schema, and a bill for each."""

from __future__ import annotations

import json
import re
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, Self

from octavo.ai.calls import Schema
from octavo.ai.faults import TokenUsage
from octavo.ai.models import Model, Prices
from octavo.core.http import write_event
from tests.support import sites
from tests.support.sites import Answer, Site

PASSAGE = re.compile(r"<passage-(\d+)-")
SECRET = "sk-canary-5f2d"
CHARACTERS_A_TOKEN = 4


class Trouble(StrEnum):
    """What can be wrong with an answer; each provider has its own form of it."""

    RATE_LIMIT = "rate_limit"
    QUOTA = "quota"
    OVERLOADED = "overloaded"
    BROKEN = "broken"
    SLOW = "slow"
    CUT = "cut"
    NOT_JSON = "not_json"
    MALFORMED = "malformed"
    BLOCKED = "blocked"
    TRUNCATED = "truncated"
    TOO_LONG = "too_long"
    BAD_KEY = "bad_key"
    FILE_GONE = "file_gone"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, whichever form it came in."""

    model: str
    instructions: str
    text: str
    schema: Schema | None = None
    pictures: int = 0
    files: tuple[str, ...] = ()
    body: dict[str, Any] = field(default_factory=dict[str, Any])
    streamed: bool = False


@dataclass(frozen=True, slots=True)
class Bill:
    model: str
    read: int
    written: int


def cost_of(bill: Bill, provider: str = "gemini") -> Decimal:
    """What the provider charges for a call."""
    price = Prices(["llama=0/0"]).find(Model(provider, bill.model))
    assert price is not None, bill
    return price.cost(TokenUsage(bill.read, bill.written))


class FakeProvider(ABC):
    """`script` is used up call by call, and then everything goes well. `answer` may be replaced by a test.

    While `outage` is set, every call ends with it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._site = Site()
        self._site.elsewhere = self._serve
        self.clear()

    def clear(self) -> None:
        """As new."""
        self.script: deque[Trouble | None] = deque()
        self.outage: Trouble | None = None
        self.asked: list[Asked] = []
        self.bills: list[Bill] = []
        self.answer: Callable[[Asked], str] = good_answer
        self.retry_after: str | None = "17"
        self.streams = True
        self._site.asked.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._site.close()

    @property
    def url(self) -> str:
        return self._site.url

    @property
    def requests(self) -> list[sites.Asked]:
        """Everything that came in, files and all."""
        return self._site.asked

    def _serve(self, request: sites.Asked) -> Answer:
        if SECRET not in json.dumps(dict(request.headers)) + request.query:
            return self.refuse(Trouble.BAD_KEY)
        return self.route(request)

    def trouble(self) -> Trouble | None:
        with self._lock:
            return self.outage or (self.script.popleft() if self.script else None)

    def converse(self, asked: Asked) -> Answer:
        """One question: what the script says, or a good answer. What was made is billed, useful or not."""
        with self._lock:
            self.asked.append(asked)
        match trouble := self.trouble():
            case None:
                return self._say(asked, self.answer(asked))
            case Trouble.MALFORMED:
                return self._say(asked, '{"surprise": [')
            case Trouble.BLOCKED | Trouble.TRUNCATED:
                return self._say(asked, '{"summ', trouble)
            case _:
                return self._misbehave(trouble, asked)

    def _misbehave(self, trouble: Trouble, asked: Asked) -> Answer:
        """Ways to fail that have nothing to do with what was asked."""
        match trouble:
            case Trouble.SLOW:
                return Answer(200, pieces=self._never())
            case Trouble.CUT:
                whole = self._say(asked, self.answer(asked))
                length = {"Content-Length": str(len(whole.body))}
                return Answer(200, headers=length, pieces=[whole.body[: len(whole.body) // 2]])
            case Trouble.NOT_JSON:
                return sites.page("<h1>Under maintenance</h1>")
            case _:
                return self.refuse(trouble)

    def _say(self, asked: Asked, text: str, trouble: Trouble | None = None) -> Answer:
        read = (len(asked.instructions) + len(asked.text)) // CHARACTERS_A_TOKEN + 258 * asked.pictures
        said = self.say(text, self.charge(asked.model, read, len(text) // CHARACTERS_A_TOKEN), trouble)
        return self.as_events(self.stream(said)) if asked.streamed and self.streams else as_json(said)

    def as_events(self, events: Iterable[dict[str, Any] | str]) -> Answer:
        """Most providers send server-sent events."""
        pieces = [write_event(one if isinstance(one, str) else json.dumps(one)) for one in events]
        return Answer(200, headers={"Content-Type": "text/event-stream"}, pieces=pieces)

    def charge(self, model: str, read: int, written: int = 0) -> Bill:
        bill = Bill(model, read, written)
        with self._lock:
            self.bills.append(bill)
        return bill

    def _never(self) -> Iterator[bytes]:
        """An answer that does not come for as long as the server runs."""
        self._site.stopping.wait()
        yield b""

    def error(self, status: int, body: dict[str, Any]) -> Answer:
        waits = {"Retry-After": self.retry_after} if status in {429, 503} and self.retry_after else {}
        return Answer(status, json.dumps(body).encode(), {"Content-Type": "application/json", **waits})

    @abstractmethod
    def route(self, request: sites.Asked) -> Answer:
        """Any request with the right key."""

    @abstractmethod
    def say(self, text: str, bill: Bill, trouble: Trouble | None) -> dict[str, Any]:
        """An answer in this provider's form; with trouble, one that ends for that reason."""

    @abstractmethod
    def stream(self, said: dict[str, Any]) -> list[dict[str, Any] | str]:
        """The same answer as events."""

    @abstractmethod
    def refuse(self, trouble: Trouble) -> Answer:
        """A refusal in this provider's form."""


def as_json(body: object) -> Answer:
    return Answer(200, json.dumps(body).encode(), {"Content-Type": "application/json"})


def in_parts(text: str, most: int = 40) -> list[str]:
    return [text[start : start + most] for start in range(0, len(text), most)]


def embedding_of(text: str, dimensions: int) -> list[float]:
    """The same for the same text, and another one for another."""
    seed = sum(place * ord(character) for place, character in enumerate(text, 1))
    return [((seed * (number + 1)) % 1009) / 1009 + 0.001 for number in range(dimensions)]


def good_answer(asked: Asked) -> str:
    """Something that fits what is asked for."""
    if asked.schema is None:
        return asked.text
    passages = sorted(set(map(int, PASSAGE.findall(asked.text))))
    if "chunks" in asked.schema.get("properties", {}):
        one = asked.schema["properties"]["chunks"]["items"]
        return json.dumps({"chunks": [fill(one) | {"passage": number} for number in passages]})
    return json.dumps(fill(asked.schema))


def fill(schema: Schema) -> Any:  # noqa: ANN401 - JSON
    """The least that a schema allows."""
    if "anyOf" in schema:
        return None
    if "enum" in schema:
        return schema["enum"][0]
    match schema["type"]:
        case "object":
            return {name: fill(one) for name, one in schema["properties"].items()}
        case "array":
            return [fill(schema["items"])]
        case "string":
            return "Words."
        case _:
            return 0.5
