"""Errors that the client itself raises, in addition to errors that the server reports."""

from __future__ import annotations

from octavo.core.errors import BadInput, ErrorClass, OctavoError


class RemoteProblem(OctavoError):
    """The server refused the request."""

    def __init__(self, status: int, code: str, title: str, detail: str | None = None) -> None:
        # The server repeats the title where it has no detail.
        super().__init__(detail if detail != title else None)
        self.title = title
        self.args = (self.line,)
        self.__dict__.update(status=status, code=code)  # set on this instance, not on the class


class BadAddress(BadInput):
    """A server address must look like https://docs.example.org or http://127.0.0.1:8400."""

    code = "BAD_ADDRESS"


class BadKey(BadInput):
    """This is not an API key. Create one with `octavo keys add`."""

    code = "BAD_KEY"


class Unreachable(OctavoError):
    """The server could not be reached."""

    code = "NETWORK"
    error_class = ErrorClass.NETWORK
    status = 502


class NotOctavo(OctavoError):
    """This is not a response from Octavo. Check the address and the server's version."""

    code = "NOT_OCTAVO"
    status = 502


class FileChanged(BadInput):
    """The file became shorter while it was being sent. Add it again."""

    code = "FILE_CHANGED"


class Damaged(OctavoError):
    """The file was damaged in transit: the server received different bytes. Add it again."""

    code = "DAMAGED"
    error_class = ErrorClass.TRANSIENT
    status = 502
