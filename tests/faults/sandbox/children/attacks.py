"""What a parser that was taken over might try. Each attack returns when it succeeded and raises when it was refused.

Run as a script it does the same outside the sandbox, which shows that the attack is a real one.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from octavo.sandbox import Task, sandboxed

if TYPE_CHECKING:
    from octavo.sandbox import JSON


class Attempt(NamedTuple):
    arguments: dict[str, Any]
    input: BinaryIO
    input_path: str


libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def syscall(number: int, *arguments: int) -> int:
    libc.syscall.restype = ctypes.c_long
    return checked(libc.syscall(ctypes.c_long(number), *(ctypes.c_long(argument) for argument in arguments)))


def text(task: Attempt, name: str) -> str:
    value = task.arguments[name]
    assert isinstance(value, str)
    return value


def number(task: Attempt, name: str) -> int:
    value = task.arguments[name]
    assert isinstance(value, int)
    return value


# Reaching somebody


def connect_tcp(task: Attempt) -> None:
    socket.create_connection(("127.0.0.1", number(task, "port")), 5).close()


def send_udp(task: Attempt) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", ("127.0.0.1", number(task, "port")))


def connect_unix(task: Attempt) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(text(task, "unix_socket"))


def connect_abstract(task: Attempt) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + text(task, "abstract_socket"))


def listen_tcp(task: Attempt) -> None:
    socket.create_server(("127.0.0.1", 0)).close()


def lead_a_pair_elsewhere(task: Attempt) -> None:
    """A pair of sockets may be made; one of its ends is then turned to somebody outside."""
    end, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with end, other:
        end.sendto(b"x", text(task, "datagram_socket"))


def pass_a_file_through_a_pair(task: Attempt) -> None:
    end, other = socket.socketpair()
    with end, other:
        socket.send_fds(end, [b"x"], [0])


# Reading what is not the input


def read_file(task: Attempt) -> None:
    assert Path(text(task, "secret")).read_bytes()


def see_size_of_file(task: Attempt) -> None:
    assert Path(text(task, "secret")).stat().st_size


def see_size_of_file_through_parent(task: Attempt) -> None:
    assert Path(f"/proc/{os.getppid()}/root/{text(task, 'secret')}").stat().st_size


def read_file_beneath_folder_descriptor(task: Attempt) -> None:
    secret = Path(text(task, "secret"))
    folder = os.open(secret.parent, os.O_PATH)
    assert os.read(os.open(secret.name, os.O_RDONLY, dir_fd=folder), 10)


def read_file_through_root_of_other_process(task: Attempt) -> None:
    assert Path(f"/proc/{number(task, 'victim')}/root/{text(task, 'secret')}").read_bytes()


def read_file_through_root_of_parent(task: Attempt) -> None:
    assert Path(f"/proc/{os.getppid()}/root/{text(task, 'secret')}").read_bytes()


def read_open_file_of_other_process(task: Attempt) -> None:
    assert Path(f"/proc/{number(task, 'victim')}/fd/0").read_bytes()


def list_folder(task: Attempt) -> None:
    assert os.listdir(Path(text(task, "secret")).parent)  # noqa: PTH208


def read_environment_of_worker(task: Attempt) -> None:
    assert Path(f"/proc/{number(task, 'worker')}/environ").read_bytes()


def read_environment_of_other_process(task: Attempt) -> None:
    assert b"CANARY" in Path(f"/proc/{number(task, 'victim')}/environ").read_bytes()


def read_memory_map_of_parent(task: Attempt) -> None:
    assert Path(f"/proc/{os.getppid()}/maps").read_bytes()


def read_memory_of_other_process(task: Attempt) -> None:
    with Path(f"/proc/{number(task, 'victim')}/mem").open("rb"):
        pass


def read_password_file(task: Attempt) -> None:
    assert Path("/etc/passwd").read_bytes()


# Writing what is not the output


def create_file(task: Attempt) -> None:
    Path(text(task, "folder"), "created").write_bytes(b"x")


def create_unnamed_file(task: Attempt) -> None:
    os.close(os.open(text(task, "folder"), os.O_TMPFILE | os.O_RDWR))


def truncate_file(task: Attempt) -> None:
    os.truncate(text(task, "writable"), 0)


def append_to_file(task: Attempt) -> None:
    with Path(text(task, "writable")).open("ab") as file:
        file.write(b"x")


def rename_file(task: Attempt) -> None:
    Path(text(task, "writable")).rename(text(task, "writable") + ".renamed")


def remove_file(task: Attempt) -> None:
    Path(text(task, "writable")).unlink()


def change_mode(task: Attempt) -> None:
    Path(text(task, "writable")).chmod(0o777)


def change_times(task: Attempt) -> None:
    os.utime(text(task, "writable"))


def change_owner(task: Attempt) -> None:
    os.chown(text(task, "writable"), os.getuid(), -1)


def make_symbolic_link(task: Attempt) -> None:
    Path(text(task, "folder"), "symbolic").symlink_to("/")


def make_hard_link(task: Attempt) -> None:
    Path(text(task, "folder"), "hard").hardlink_to(text(task, "writable"))


def make_folder(task: Attempt) -> None:
    Path(text(task, "folder"), "made").mkdir()


def make_pipe(task: Attempt) -> None:
    os.mkfifo(Path(text(task, "folder"), "fifo"))


def write_to_input(task: Attempt) -> None:
    os.write(task.input.fileno(), b"x")


def reopen_input_for_writing(task: Attempt) -> None:
    os.close(os.open(task.input_path, os.O_WRONLY))


# Starting processes


def fork(task: Attempt) -> None:
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def clone_like_fork(task: Attempt) -> None:
    clone = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
    if (pid := syscall(clone, signal.SIGCHLD, 0, 0, 0, 0)) == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def spawn(task: Attempt) -> None:
    os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)


def run_program(task: Attempt) -> None:
    subprocess.run(["/bin/true"], check=True)


def become_program(task: Attempt) -> None:
    os.execv("/bin/true", ["true"])


def become_program_from_memory(task: Attempt) -> None:
    memory = os.memfd_create("program")
    os.write(memory, Path("/bin/true").read_bytes())
    os.execve(memory, ["true"], {})


# Taking hold of other processes


def kill_victim(task: Attempt) -> None:
    os.kill(number(task, "victim"), signal.SIGTERM)


def signal_parent(task: Attempt) -> None:
    os.kill(os.getppid(), 0)


def signal_through_descriptor(task: Attempt) -> None:
    victim = os.pidfd_open(number(task, "victim"))
    signal.pidfd_send_signal(victim, signal.SIGTERM)


def have_kernel_signal_victim(task: Attempt) -> None:
    reading, _ = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETOWN, number(task, "victim"))


def attach_debugger(task: Attempt) -> None:
    attach = 16
    checked(libc.ptrace(attach, number(task, "victim"), None, None))


def read_victims_memory(task: Attempt) -> None:
    class Vector(ctypes.Structure):
        _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))

    # The address does not matter: EFAULT would mean that we were let in.
    buffer = ctypes.create_string_buffer(8)
    ours, theirs = Vector(ctypes.addressof(buffer), 8), Vector(1, 8)
    victim = number(task, "victim")
    result = libc.process_vm_readv(victim, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)
    if result < 0 and ctypes.get_errno() != 14:
        checked(result)


def change_victims_limits(task: Attempt) -> None:
    victim = number(task, "victim")
    resource.prlimit(victim, resource.RLIMIT_NOFILE, resource.prlimit(victim, resource.RLIMIT_NOFILE))


def slow_victim_down(task: Attempt) -> None:
    os.setpriority(os.PRIO_PROCESS, number(task, "victim"), 19)


def outlive_parent(task: Attempt) -> None:
    checked(libc.prctl(1, 0, 0, 0, 0))


# Gaining privileges


def change_user(task: Attempt) -> None:
    os.setuid(os.getuid())


def raise_own_limit(task: Attempt) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.prlimit(0, resource.RLIMIT_MEMLOCK, (soft, hard + 1))


def mount(task: Attempt) -> None:
    checked(libc.mount(b"none", text(task, "folder").encode(), b"tmpfs", 0, None))
    libc.umount(text(task, "folder").encode())


def change_root(task: Attempt) -> None:
    os.chroot("/")


def enter_namespace(task: Attempt) -> None:
    checked(libc.unshare(0x10000000))


def set_host_name(task: Attempt) -> None:
    name = os.uname().nodename.encode()
    checked(libc.sethostname(name, len(name)))


# Machinery that was the way around other filters


def set_up_io_uring(task: Attempt) -> None:
    parameters = ctypes.create_string_buffer(120)
    syscall(425, 1, ctypes.addressof(parameters))


def make_keyring(task: Attempt) -> None:
    checked(libc.syscall(ctypes.c_long({"x86_64": 250, "aarch64": 219}[os.uname().machine]), 0, -3, 1))


def type_into_terminal(task: Attempt) -> None:
    fcntl.ioctl(0, 0x5412, b"x")


# Memory that no limit counts


def share_memory(task: Attempt) -> None:
    mmap.mmap(-1, 4096).close()


def make_memory_file(task: Attempt) -> None:
    os.close(os.memfd_create("hidden"))


def make_system_v_memory(task: Attempt) -> None:
    identifier = checked(libc.shmget(0, 4096, 0o600))
    libc.shmctl(identifier, 0, None)


# Other calling conventions, whose numbers the filter does not know


def call_as_x32(task: Attempt) -> None:
    syscall(0x40000000 | 39)


def call_as_32_bit(task: Attempt) -> None:
    code = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, getpid; int 0x80; ret
    ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()


@sandboxed
def attack(task: Task, *, name: str, scene: dict[str, JSON]) -> None:
    globals()[name](Attempt(arguments=scene, input=task.input, input_path=task.input_path))


def main() -> None:
    given: dict[str, Any] = json.loads(sys.argv[2])
    source = Path(given["writable"]).open("r+b")  # noqa: SIM115
    task = Attempt(arguments=given, input=source, input_path=given["writable"])
    globals()[sys.argv[1]](task)


if __name__ == "__main__":
    main()
