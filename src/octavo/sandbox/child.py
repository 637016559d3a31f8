"""The sandboxed child process: it confines itself, calls one function, reports the result and exits.

It is never reused.
"""

from __future__ import annotations

import errno
import faulthandler
import importlib
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any, NoReturn

from octavo.core import errors
from octavo.core.types import JSON
from octavo.sandbox import kernel, protocol
from octavo.sandbox.confinement import Confinement
from octavo.sandbox.protocol import ChildFiles, Failure, SandboxedFunction, Task

# Built in advance, because there is no memory left to build it with when it is needed.
_OUT_OF_MEMORY = protocol.frame(protocol.ERROR, Failure(kind=protocol.FAILURE_MEMORY, name="MemoryError", detail=None))
_STORAGE_ERRNOS = {errno.ENOSPC, errno.EDQUOT, errno.EIO}


def run_child(files: ChildFiles, confinement: Confinement, parent: int) -> NoReturn:
    """Run one task in this newly forked process, then exit. Never returns to the code of the process that forked it."""
    status = os.EX_SOFTWARE
    try:
        status = _work(files, confinement, parent)
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else os.EX_SOFTWARE
    except BaseException:  # noqa: BLE001 - no error must reach the loop of the preloaded parent
        traceback.print_exc()
    finally:
        os._exit(status & 0xFF)


def _work(files: ChildFiles, confinement: Confinement, parent: int) -> int:
    os.setsid()
    kernel.die_with(parent)
    sys.dont_write_bytecode = True
    _redirect_standard_files(files.log)
    function, arguments, limits = protocol.read_request(files.request)
    keep = (files.input, files.output, files.channel)
    confinement.enter(limits, input_file=files.input, keep=keep)
    task = Task(
        input=os.fdopen(files.input, "rb"),
        output=os.fdopen(files.output, "wb"),
        channel=files.channel,
    )
    _write_all(files.channel, _call(function, task, arguments))
    return os.EX_OK


def _redirect_standard_files(log: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.dup2(log, 2)
    faulthandler.enable(file=2)


def _call(name: str, task: Task, arguments: Mapping[str, JSON]) -> bytes:
    try:
        value = find_function(name)(task, **arguments)
        if not task.output.closed:
            task.output.flush()
        return _value_frame(value)
    except SystemExit:
        raise
    except MemoryError:
        return _OUT_OF_MEMORY
    except BaseException as error:  # noqa: BLE001 - a panic in a Rust extension is a BaseException
        return protocol.frame(protocol.ERROR, _failure(error))


def find_function(name: str) -> SandboxedFunction[...]:
    module, _, attribute = name.partition(":")
    found: Any = getattr(importlib.import_module(module), attribute)
    if not isinstance(found, SandboxedFunction):
        raise TypeError(f"{name} is not a sandboxed function")
    return found


def _value_frame(value: JSON) -> bytes:
    line = protocol.frame(protocol.VALUE, value)
    if len(line) > protocol.MAX_VALUE_BYTES:
        return protocol.frame(protocol.ERROR, Failure(kind=protocol.FAILURE_OUTPUT, name="", detail=None))
    return line


def _failure(error: BaseException) -> Failure:
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return Failure(kind=protocol.FAILURE_OUTPUT, name="OSError", detail=None)
    if isinstance(error, OSError) and error.errno in _STORAGE_ERRNOS:
        return Failure(kind=protocol.FAILURE_NAMED, name=errors.StorageFailed.__name__, detail=error.strerror)
    if isinstance(error, errors.OctavoError):
        return Failure(kind=protocol.FAILURE_NAMED, name=_known_name(error), detail=_shortened(error.detail))
    traceback.print_exception(error)
    return Failure(kind=protocol.FAILURE_OTHER, name=type(error).__name__, detail=_shortened(str(error)))


def _known_name(error: errors.OctavoError) -> str:
    """Return the name of the error's nearest base class in `octavo.core.errors`.

    A function may define its own error classes, which the worker cannot import.
    """
    return next(known.__name__ for known in type(error).__mro__ if known.__module__ == errors.__name__)


def _shortened(text: str | None) -> str | None:
    return text[: protocol.MAX_TEXT] if text else None


def _write_all(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
