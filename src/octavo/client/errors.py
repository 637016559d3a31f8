"""What can go wrong between here and a server, beside what the server itself says."""

from __future__ import annotations

from octavo.core.errors import BadInput, ErrorClass, OctavoError


class RemoteProblem(OctavoError):
    """The server refused this."""

    def __init__(self, status: int, code: str, title: str, detail: str | None = None) -> None:
        # The server's own words; it repeats the title where it has no detail.
        super().__init__(detail if detail != title else None)
        self.title = title
        self.args = (self.line,)
        self.__dict__.update(status=status, code=code)  # of this one problem, not of the class


class Unreachable(OctavoError):
    """The server could not be reached."""

    code = "NETWORK"
    error_class = ErrorClass.NETWORK
    status = 502


class NotOctavo(OctavoError):
    """The answer is not one of Octavo's. Is the address right, and is the server of this version?"""

    code = "NOT_OCTAVO"
    status = 502


class FileChanged(BadInput):
    """The file became shorter while it was sent. Add it again."""

    code = "FILE_CHANGED"


class Damaged(OctavoError):
    """What the server received is not what was sent: its SHA-256 differs. Add it again."""

    code = "DAMAGED"
    error_class = ErrorClass.TRANSIENT
    status = 502
