"""The preloaded parent process: a small process that has imported the parsers and forks a child process for each task.

It runs as `python -m octavo.sandbox.parent` with an empty environment and never reads a document. Only the parent
process sends signals to its child processes. It reaps them, so it knows that their process IDs have not been reused.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from resource import struct_rusage

from octavo.sandbox import child, kernel
from octavo.sandbox.confinement import Confinement, die_first, drop_privileges, hide_other_files
from octavo.sandbox.protocol import KIB, NOT_STARTED, NOTICE, ORDER, ChildFiles, Notice, Order

_MAXRSS_UNIT = KIB if kernel.IS_LINUX else 1
_CHILD_FILES = len(ChildFiles._fields)
# Modules in `later` are imported after this idle time, or before the child with this number is forked.
_PAUSE_MILLISECONDS = 2000
_MOST_UNPREPARED = 10


@dataclass(slots=True)
class PreloadedParent:
    """The process that forks a child process for each task.

    `later` lists modules to import when idle. `tasks` maps the process IDs of running child processes to task numbers.
    """

    control: socket.socket
    confinement: Confinement
    later: list[str]
    forked: int = 0
    tasks: dict[int, int] = field(default_factory=dict[int, int])

    def serve(self) -> None:
        """Handle orders until the worker closes its end of the socket."""
        child_ended = _wake_on_child_end()
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(child_ended, select.POLLIN)
        self._notify(Notice.READY)
        while True:
            pause = _PAUSE_MILLISECONDS if self.later and not self.tasks else None
            ready = {descriptor for descriptor, _ in poll.poll(pause)}
            if not ready:
                self._import_rest()
            if child_ended in ready:
                os.read(child_ended, 4 * KIB)
                self._reap()
            if self.control.fileno() in ready and not self._handle_order():
                return

    def _handle_order(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self.control, ORDER.size, _CHILD_FILES, socket.MSG_WAITALL)
        if not message:
            return False
        order, task = ORDER.unpack(message)
        if order == Order.RUN:
            self._fork(task, ChildFiles(*descriptors))
        else:
            self._kill(task)
        return True

    def _fork(self, task: int, files: ChildFiles) -> None:
        parent = os.getpid()
        self.forked += 1
        if self.forked == _MOST_UNPREPARED:
            self._import_rest()
        try:
            pid = os.fork()
        except OSError:
            self._notify(Notice.EXITED, task, NOT_STARTED)
        else:
            if pid == 0:
                _forget_signals()
                child.run_child(files, self.confinement, parent)
            self.tasks[pid] = task
        for descriptor in files:
            os.close(descriptor)

    def _import_rest(self) -> None:
        """Import the modules in `later`.

        Import errors are ignored, so that only the tasks that need a missing module fail.
        """
        for module in self.later:
            with suppress(ImportError):
                importlib.import_module(module)
        self.later.clear()
        _freeze_objects()

    def _kill(self, wanted: int) -> None:
        for pid, task in self.tasks.items():
            if task == wanted:
                os.kill(pid, signal.SIGKILL)

    def _reap(self) -> None:
        while self.tasks:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            if (task := self.tasks.pop(pid, None)) is not None:  # None for a process that a preloaded module started
                self._notify(Notice.EXITED, task, status, usage)

    def _notify(self, notice: Notice, task: int = 0, status: int = 0, usage: struct_rusage | None = None) -> None:
        cpu_seconds = usage.ru_utime + usage.ru_stime if usage else 0.0
        peak_memory = usage.ru_maxrss * _MAXRSS_UNIT if usage else 0
        self.control.sendall(NOTICE.pack(notice, task, status, cpu_seconds, peak_memory))

    def end_children(self) -> None:
        """Kill all child processes and wait for them.

        On Linux the kernel would also do this, but not on other systems.
        """
        for pid in self.tasks:
            os.kill(pid, signal.SIGKILL)
        for pid in self.tasks:
            os.waitpid(pid, 0)


def _wake_on_child_end() -> int:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return reading


def _forget_signals() -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _freeze_objects() -> None:
    """Exclude all existing objects from garbage collection, so that child processes share their memory."""
    gc.collect()
    gc.freeze()


def main(control: str, worker: str, preload: str, later: str, readable: str, niceness: str) -> None:
    """Run the parent process. The arguments come from the command line. Lists are encoded as JSON."""
    kernel.die_with(int(worker))
    os.nice(int(niceness))
    os.environ.clear()
    folders = [Path(folder) for folder in json.loads(readable)]
    sys.path += map(str, folders)
    for module in json.loads(preload):
        importlib.import_module(module)
    die_first()
    hide_other_files(folders)
    kernel.die_with(int(worker))  # again, in case the kernel forgot it with the change of privileges
    parent = PreloadedParent(socket.socket(fileno=int(control)), Confinement.prepare(folders), json.loads(later))
    drop_privileges()
    _freeze_objects()
    with suppress(ConnectionError):  # the worker has ended
        parent.serve()
    parent.end_children()


if __name__ == "__main__":
    main(*sys.argv[1:])
