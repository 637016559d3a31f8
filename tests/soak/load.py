"""People at work: each adds, converts, analyses and tags, and remembers what was acknowledged."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from http.client import HTTPConnection, HTTPException
from typing import Any

from tests.support.analyses import write_book
from tests.support.conversions import invoice

PEOPLE = 3
ANSWER_SECONDS = 30
RETRY_SECONDS = 0.5
# People wait when there is this much to do, so that the soak tests kills and not the size of the machine.
MOST_UNFINISHED = 40
MOST_PAUSE_SECONDS = 4.0
BOOK_PAGES = (6, 60)
WORDS = "bog crane ferry harbour lantern meadow oyster quarry raven saddle tide vermilion".split()  # noqa: SIM905


@dataclass(slots=True)
class Receipts:
    """What the server has acknowledged: contents by document, numbers by conversion, analyses, and tags by document."""

    contents: dict[str, str] = field(default_factory=dict[str, str])
    books: list[str] = field(default_factory=list[str])
    conversions: dict[str, str] = field(default_factory=dict[str, str])
    analyses: list[str] = field(default_factory=list[str])
    tags: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    problems: list[str] = field(default_factory=list[str])
    retries: int = 0


class Caller:
    """Sends requests until one is answered; a server that is away is tried again, as any good client does."""

    def __init__(self, port: int, key: str) -> None:
        self._port = port
        self._key = key

    def once(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_SECONDS)
        with contextlib.closing(connection):
            connection.request(method, path, body, {"Authorization": f"Bearer {self._key}", **headers})
            answer = connection.getresponse()
            return answer.status, answer.read()

    def get(self, path: str) -> tuple[int, bytes]:
        return self.once("GET", path, b"", {})


class Person(threading.Thread):
    """One person. Chance follows the seed, and nothing that is added has been added before."""

    def __init__(self, seed: int, place: int, caller: Caller, receipts: Receipts) -> None:
        super().__init__(name=f"p{seed}x{place}", daemon=True)
        self._place = place
        self.stopping = threading.Event()
        self.unfinished: Callable[[], int] = lambda: 0
        self._chance = random.Random(f"{seed} {place}")
        self._caller = caller
        self._receipts = receipts
        self._number = 0
        self._actions: dict[Callable[[], None], int] = {
            self.upload: 6,
            self.paste: 4,
            self.upload_book: 2,
            self.convert: 3,
            self.analyse: 2,
            self.tag: 4,
        }

    def run(self) -> None:
        while not self.stopping.is_set():
            if self.unfinished() < MOST_UNFINISHED:
                (action,) = self._chance.choices(list(self._actions), list(self._actions.values()))
                action()
            self.stopping.wait(self._chance.random() * MOST_PAUSE_SECONDS)

    # What people do ---------------------------------------------------------------------------------------------

    def upload(self) -> None:
        content = self._prose(self._chance.choice((30, 300, 3000))).encode()
        self._add(content, {"X-Upload-Filename": f"{self._label()}.md", "Content-Type": "text/markdown"})

    def upload_book(self) -> None:
        content = write_book(self._chance.choice(BOOK_PAGES)) + f"\n% {self._label()}\n".encode()
        headers = {"X-Upload-Filename": f"{self._label()}.pdf", "Content-Type": "application/pdf"}
        if document := self._add(content, headers):
            self._receipts.books.append(document)

    def paste(self) -> None:
        text = self._prose(100)
        answer = self._send_json("POST", "/api/v1/documents", {"text": text, "title": self._label()}, 202)
        if answer:
            self._receipts.contents[answer["document_id"]] = sha256(text.encode()).hexdigest()

    def convert(self) -> None:
        number = f"{self.name}-{self._next()}"
        headers = {"X-Upload-Filename": f"{number}.pdf", "Content-Type": "application/pdf"}
        answer = self._send("POST", "/api/v1/conversions?mapping=invoice_v1", invoice(number).write(), headers, 202)
        if answer:
            self._receipts.conversions[answer["id"]] = number

    def analyse(self) -> None:
        if not self._receipts.books:
            return
        document = self._chance.choice(self._receipts.books)
        # A book whose text is not ready, or that is being analysed, is refused.
        answer = self._send_json("POST", "/api/v1/analyses", {"document_id": document}, 202, (404, 409, 422))
        if answer:
            self._receipts.analyses.append(answer["id"])

    def tag(self) -> None:
        # The last one who was answered wins, so nobody tags the documents of another.
        mine = [one for one in list(self._receipts.contents) if hash_of(one) % PEOPLE == self._place]
        if not mine:
            return
        document, tags = self._chance.choice(mine), [f"{self.name}-{self._next()}"]
        if self._send_json("PATCH", f"/api/v1/documents/{document}", {"tags": tags}, 200):
            self._receipts.tags[document] = tags

    # How they do it ---------------------------------------------------------------------------------------------

    def _add(self, content: bytes, headers: dict[str, str]) -> str | None:
        answer = self._send("POST", "/api/v1/documents", content, headers, 202)
        if answer is None:
            return None
        self._receipts.contents[answer["document_id"]] = sha256(content).hexdigest()
        return answer["document_id"]

    def _send_json(
        self, method: str, path: str, body: object, wanted: int, refused: tuple[int, ...] = ()
    ) -> dict[str, Any] | None:
        return self._send(
            method, path, json.dumps(body).encode(), {"Content-Type": "application/json"}, wanted, refused
        )

    def _send(
        self, method: str, path: str, body: bytes, headers: dict[str, str], wanted: int, refused: tuple[int, ...] = ()
    ) -> dict[str, Any] | None:
        """Until it is answered, or the soak ends without an answer: then nothing was promised."""
        while not self.stopping.is_set():
            status, answer = 0, b""
            with contextlib.suppress(OSError, HTTPException):
                status, answer = self._caller.once(method, path, body, headers)
            if status == wanted or (status == 200 and wanted == 202):
                return json.loads(answer)
            if status in refused:
                return None
            if 0 < status < 500 and status != 429:
                self._receipts.problems.append(f"{method} {path}: {status} {answer[:200].decode(errors='replace')}")
                return None
            self._receipts.retries += 1
            time.sleep(RETRY_SECONDS)
        return None

    def _prose(self, words: int) -> str:
        text = " ".join(self._chance.choice(WORDS) for _ in range(words))
        return f"# {self._label()}\n\nNumber {self._next()} of {self.name}. {text}.\n"

    def _label(self) -> str:
        return f"{self.name}-{self._number}"

    def _next(self) -> int:
        self._number += 1
        return self._number


def hash_of(text: str) -> int:
    return sha256(text.encode()).digest()[0]
