"""Repeats the response to a request that a client sends again with the same Idempotency-Key header.

The response is stored in the transaction that creates the new data. If the process is killed before the commit, neither
the data nor the response exists, and the repeated request runs as if it were the first. If the process is killed after
the commit, the repeated request gets the stored response. So nothing is created twice.

Only successful responses are stored. If a request fails, nothing is created, and the client can use the key again.

A repeated request must have the same body as the first. Request bodies are compared by a checksum that is computed
while the body is read, so large files are never held in memory.

Responses can contain secrets, such as a new API key. They are therefore encrypted with the header's value. The database
stores only a hash of this value.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import AsyncGenerator
from typing import Annotated, Any, NoReturn, TypeVar

from fastapi import Depends, Header, Request, Response
from fastapi.routing import APIRoute
from pydantic_core import to_json
from python_multipart.multipart import parse_options_header

from octavo.core.errors import BadInput
from octavo.core.types import hash_token
from octavo.database import Connection, Row, fetch_rows, load_queries
from octavo.owners import Caller
from octavo.web.context.callers import OptionalCaller
from octavo.web.context.services import ServicesOf

QUERIES = load_queries("requests")
HEADER = "Idempotency-Key"
REPEATED = {"idempotency-replayed": "true"}
KEPT_SECONDS = 24 * 3600
MOST_ANSWER_BYTES = 512 << 10
SALT_BYTES = 16
RUNNING_SECONDS = 2.0
Value = TypeVar("Value")


class KeyReused(BadInput):
    """This Idempotency-Key was already used for another request. Use a new key for each request."""

    code = "IDEMPOTENCY_KEY_REUSED"


class KeyInUse(BadInput):
    """The first request with this Idempotency-Key is still running. Retry in a few seconds."""

    code = "IDEMPOTENCY_KEY_IN_USE"
    status = 409
    retry_after_seconds = RUNNING_SECONDS


class AnswerTooLong(BadInput):
    """This request was already completed. Its response is too long to be repeated."""

    code = "IDEMPOTENCY_ANSWER_TOO_LONG"
    status = 409


class Repeated(Exception):
    """Raised to return the stored response to an earlier request with the same key."""

    def __init__(self, status: int, answer: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.answer = answer


async def answer_again(request: Request, repeated: Exception) -> Response:
    """Send the stored response. This is the exception handler for `Repeated`."""
    del request
    if not isinstance(repeated, Repeated):
        raise TypeError("not a stored answer")
    return Response(repeated.answer, repeated.status, REPEATED, "application/json")


# Checksums and encryption ------------------------------------------------------------------------------------------


class Fingerprint:
    """The checksum of a request: key, method, path, query, person, content type, file name and body.

    The boundary of a multipart form is left out, because clients choose a new one for each attempt.
    """

    def __init__(self, parts: list[str], boundary: bytes = b"") -> None:
        self._digest = hashlib.sha256("\n".join(parts).encode("utf-8", "surrogatepass"))
        self._boundary = boundary
        self._rest = b""
        self.bytes = 0

    def add(self, chunk: bytes) -> None:
        if not self._boundary:
            self._count(chunk)
            return
        text = (self._rest + chunk).replace(self._boundary, b"")
        # The end may be the beginning of a boundary.
        most = len(self._boundary) - 1
        cut = max(0, len(text) - most)
        self._rest = text[cut:]
        self._count(text[:cut])

    def digest(self) -> bytes:
        """Return the checksum of the whole request. Do not call `add` afterwards."""
        self._count(self._rest)
        self._rest = b""
        return self._digest.digest()

    def _count(self, chunk: bytes) -> None:
        self.bytes += len(chunk)
        self._digest.update(chunk)


def fingerprint_of(request: Request, caller: Caller, key: str) -> Fingerprint:
    """Start the checksum of a request.

    The checksum includes the key, so that nobody can use a stored checksum to guess a password in the body.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary", b"") if kind == b"multipart/form-data" else b""
    name = request.headers.get("x-upload-filename", "")
    url = request.url
    # A person who became a limited member after the first request must not get its response.
    person = f"{caller.user_id} limited" if caller.limited else str(caller.user_id)
    parts = [key, request.method, url.path, url.query, person, kind.decode("latin-1"), name, ""]
    return Fingerprint(parts, boundary)


def seal(data: bytes, key: str, salt: bytes) -> bytes:
    """Encrypt or decrypt a response: XOR it with a key stream that is derived from the header and a random salt."""
    stream = hashlib.shake_256(b"answer\n" + salt + key.encode()).digest(len(data))
    return (int.from_bytes(data) ^ int.from_bytes(stream)).to_bytes(len(data))


# One request -------------------------------------------------------------------------------------------------------


class Idempotency:
    """The Idempotency-Key of one request. Without a key, nothing is stored."""

    def __init__(self, request: Request, caller: Caller | None, key: str | None) -> None:
        self._request = request
        self._key = key or ""
        self._caller = caller
        self._body = fingerprint_of(request, caller, key) if caller and key else None

    @property
    def has_key(self) -> bool:
        return self._body is not None

    async def stream(self) -> AsyncGenerator[bytes]:
        """Yield the body of the request, and compute its checksum."""
        async for chunk in self._request.stream():
            if self._body:
                self._body.add(chunk)
            yield chunk

    async def read(self) -> None:
        """Compute the checksum of the body for a route that does not stream it.

        Either FastAPI has already read the body, or the route ignores it.
        """
        async for _ in self.stream():
            pass

    async def keep(self, connection: Connection, value: Value) -> Value:
        """Store the response of this request in the transaction that creates the data. Returns `value`.

        Raises `KeyInUse`, which rolls back the transaction, if another request with this key has already stored a
        response.
        """
        if self._body is None:
            return value
        status, answer = serialise(self._request, value)
        salt = secrets.token_bytes(SALT_BYTES)
        values = self._place() | {
            "request": self._body.digest(),
            "body_bytes": self._body.bytes,
            "status": status,
            "salt": salt,
            "answer": seal(answer, self._key, salt) if len(answer) <= MOST_ANSWER_BYTES else None,
        }
        if not await fetch_rows(connection, QUERIES.keep_answer, values):
            raise KeyInUse
        return value

    async def find(self, connection: Connection) -> Row | None:
        """Find the stored response to an earlier request with this key."""
        found = await fetch_rows(connection, QUERIES.find_answer, self._place())
        return found[0] if found else None

    async def repeat(self, stored: Row) -> NoReturn:
        """Raise `Repeated` with the stored response, or `KeyReused` if this request differs from the earlier one.

        As soon as the body is longer than that of the earlier request, `KeyReused` is raised without reading the rest.
        """
        body = self._body or Fingerprint([])
        async for _ in self.stream():
            if body.bytes > stored["body_bytes"]:
                raise KeyReused
        if body.digest() != stored["request"]:
            raise KeyReused
        if stored["answer"] is None:
            raise AnswerTooLong
        raise Repeated(stored["status"], seal(stored["answer"], self._key, stored["salt"]))

    def _place(self) -> dict[str, Any]:
        owner = self._caller.owner_id if self._caller else None
        return {"owner": owner, "key": hash_token(self._key), "seconds": KEPT_SECONDS}


def serialise(request: Request, value: object) -> tuple[int, bytes]:
    """Convert the return value of a route to the status and body of its response."""
    route = _route_of(request)
    if route.response_field is None:
        raise TypeError("only routes with a declared answer can be repeated")
    plain = route.response_field.serialize(value, mode="json", exclude_none=route.response_model_exclude_none)
    return route.status_code or 200, to_json(plain)


async def idempotency_of(
    request: Request,
    services: ServicesOf,
    caller: OptionalCaller,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1,
            max_length=255,
            pattern=r"^[\x20-\x7e]+$",
            description="A random value that identifies this request, such as a UUID. If you send the request again "
            "with the same value within 24 hours, you get the same response, and nothing is created twice.",
            examples=["5f1c7f3e-9f5b-4c3a-8a55-0d6f2b1f9a10"],
        ),
    ] = None,
) -> AsyncGenerator[Idempotency]:
    """Repeat the stored response if the key was used before. Otherwise, run the route.

    While the route runs, other requests with the same key are refused. Callers without write access never get a stored
    response, because the route refuses them.
    """
    # If this request opened a session for a visitor, the caller is in `request.state`.
    known: Caller | None = caller or getattr(request.state, "caller", None)
    if idempotency_key is None or known is None or not known.may_edit:
        yield Idempotency(request, known, None)
        return
    slot = f"request {known.owner_id} {hash_token(idempotency_key).hex()}"
    async with services.limits.slots.hold(slot, 1, KeyInUse()):
        found = Idempotency(request, known, idempotency_key)
        async with services.database.connection() as connection:
            stored = await found.find(connection)
        if stored:
            await found.repeat(stored)
        if not _is_streamed(request):
            await found.read()
        yield found


def _is_streamed(request: Request) -> bool:
    """Whether the route reads the body as it arrives. Only such routes describe their body in `openapi_extra`."""
    return "requestBody" in (_route_of(request).openapi_extra or {})


def _route_of(request: Request) -> APIRoute:
    route = request.scope["route"]
    if not isinstance(route, APIRoute):
        raise TypeError("only routes of the API can be repeated")
    return route


# With this scope, the key is released before the response is sent, so a client that has it can repeat the request.
IdempotencyOf = Annotated[Idempotency, Depends(idempotency_of, scope="function")]
