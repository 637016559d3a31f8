"""A parser that was taken over reaches nothing: each attack works outside, and fails inside."""

from __future__ import annotations

import asyncio
import json
import os
import platform
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from octavo.sandbox import JSON, Call, ChildCrashed, Sandbox, TaskFailed

pytestmark = pytest.mark.asyncio(loop_scope="module")

ATTACKS = Path(__file__).parent / "children" / "attacks.py"

EVERYBODY = "everybody"  # shown to succeed outside the sandbox
ROOT = "root"  # the same, but only root may do it at all
NOT_SHOWN = "not shown"  # depends on how the kernel is set up, or would harm the machine


@dataclass(frozen=True, slots=True)
class Attack:
    name: str
    works_for: str = EVERYBODY


REFUSED = [
    # Reaching somebody: the database's socket, the network, anything on this machine.
    Attack("connect_tcp"),
    Attack("send_udp"),
    Attack("connect_unix"),
    Attack("connect_abstract"),
    Attack("listen_tcp"),
    Attack("lead_a_pair_elsewhere"),
    Attack("pass_a_file_through_a_pair"),
    # Reading other documents, keys, and the worker's environment.
    Attack("read_file"),
    Attack("read_file_beneath_folder_descriptor"),
    Attack("read_file_through_root_of_other_process"),
    Attack("read_file_through_root_of_parent"),
    Attack("read_open_file_of_other_process"),
    Attack("list_folder"),
    Attack("read_environment_of_worker"),
    Attack("read_environment_of_other_process"),
    Attack("read_memory_map_of_parent"),
    Attack("read_memory_of_other_process"),
    Attack("read_password_file"),
    Attack("see_size_of_file"),
    Attack("see_size_of_file_through_parent"),
    # Leaving something behind.
    Attack("create_file"),
    Attack("create_unnamed_file"),
    Attack("truncate_file"),
    Attack("append_to_file"),
    Attack("rename_file"),
    Attack("remove_file"),
    Attack("change_mode"),
    Attack("change_times"),
    Attack("change_owner"),
    Attack("make_symbolic_link"),
    Attack("make_hard_link"),
    Attack("make_folder"),
    Attack("make_pipe"),
    Attack("write_to_input"),
    Attack("reopen_input_for_writing"),
    # Processes that would live on when the child is killed.
    Attack("fork"),
    Attack("clone_like_fork"),
    Attack("spawn"),
    Attack("run_program"),
    Attack("become_program"),
    Attack("become_program_from_memory"),
    Attack("outlive_parent"),
    # Taking hold of the worker or of a sibling.
    Attack("kill_victim"),
    Attack("signal_parent"),
    Attack("signal_through_descriptor"),
    Attack("have_kernel_signal_victim"),
    Attack("attach_debugger"),
    Attack("read_victims_memory"),
    Attack("change_victims_limits"),
    Attack("slow_victim_down"),
    # Getting back what was given up.
    Attack("change_user"),
    Attack("raise_own_limit", NOT_SHOWN),
    Attack("mount", ROOT),
    Attack("change_root", ROOT),
    Attack("set_host_name", ROOT),
    Attack("enter_namespace", NOT_SHOWN),
    # Ways around other filters.
    Attack("set_up_io_uring", NOT_SHOWN),
    Attack("make_keyring", NOT_SHOWN),
    Attack("type_into_terminal", NOT_SHOWN),
    # Memory that RLIMIT_DATA does not count.
    Attack("share_memory"),
    Attack("make_memory_file"),
    Attack("make_system_v_memory"),
]

# Foreign calling conventions end the child at once.
KILLED = ["call_as_x32", "call_as_32_bit"]


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything an attack may want to get at."""

    arguments: dict[str, JSON]
    victim: subprocess.Popen[bytes]

    @property
    def writable(self) -> Path:
        return Path(str(self.arguments["writable"]))


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    secret, writable, folder = tmp_path / "secret", tmp_path / "writable", tmp_path / "folder"
    secret.write_bytes(b"secret")
    writable.write_bytes(b"keep")
    folder.mkdir()
    abstract = f"octavo-test-{os.getpid()}"
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        for address in (str(tmp_path / "socket"), f"\0{abstract}"):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        datagrams = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagrams.bind(str(tmp_path / "datagrams"))
        opened = stack.enter_context(secret.open("rb"))
        victim = stack.enter_context(subprocess.Popen(["/bin/sleep", "600"], env={"CANARY": "x"}, stdin=opened))
        stack.callback(victim.kill)
        yield Scene(
            {
                "port": tcp.getsockname()[1],
                "unix_socket": str(tmp_path / "socket"),
                "abstract_socket": abstract,
                "datagram_socket": str(tmp_path / "datagrams"),
                "secret": str(secret),
                "writable": str(writable),
                "folder": str(folder),
                "victim": victim.pid,
                "worker": os.getpid(),
            },
            victim,
        )


def is_shown(attack: Attack) -> bool:
    return attack.works_for == EVERYBODY or (attack.works_for == ROOT and os.geteuid() == 0)


@pytest.mark.long  # about the attacks, which seldom change, and each starts an interpreter
@pytest.mark.parametrize("attack", [attack for attack in REFUSED if is_shown(attack)], ids=lambda attack: attack.name)
async def test_attack_works_outside(attack: Attack, scene: Scene) -> None:
    """Otherwise its failure inside would show nothing."""
    command = [sys.executable, str(ATTACKS), attack.name, json.dumps(scene.arguments)]
    process = await asyncio.create_subprocess_exec(*command)
    assert await process.wait() == 0


@pytest.mark.parametrize("attack", REFUSED, ids=lambda attack: attack.name)
async def test_attack_fails_inside(attack: Attack, scene: Scene, sandbox: Sandbox) -> None:
    before = sorted(path.name for path in scene.writable.parent.rglob("*"))
    with pytest.raises(TaskFailed) as failure:
        await sandbox.run(
            Call("attacks:attack", {"name": attack.name, "scene": scene.arguments}), input_file=scene.writable
        )
    assert failure.value.type_name in {"PermissionError", "OSError", "FileNotFoundError"}, failure.value.log
    assert scene.victim.poll() is None
    assert scene.writable.read_bytes() == b"keep"
    assert before == sorted(path.name for path in scene.writable.parent.rglob("*"))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="these conventions belong to x86_64")
@pytest.mark.parametrize("attack", KILLED)
async def test_foreign_calling_convention_kills(attack: str, sandbox: Sandbox) -> None:
    with pytest.raises(ChildCrashed):
        await sandbox.run(Call("attacks:attack", {"name": attack, "scene": {}}))


async def test_child_inherits_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    # Ours would be inherited by an ordinary child: a descriptor without close-on-exec, and the environment.
    descriptor = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(descriptor, True)
    try:
        outcome = await sandbox.run(Call("innocent:describe_surroundings"))
    finally:
        os.close(descriptor)
    assert outcome.value == {"environment": {}, "unexpected": [], "cwd": "/"}


async def test_child_cannot_look_into_a_sibling(sandbox: Sandbox) -> None:
    """Two children of two owners run at the same time as the same user."""
    asleep = asyncio.Event()
    sleeper = asyncio.create_task(
        sandbox.run(Call("deaths:sleep_for_ever"), on_progress=lambda _progress: asleep.set())
    )
    await asleep.wait()
    [parent] = [child for child in psutil.Process().children() if "octavo.sandbox.parent" in child.cmdline()]
    [sibling] = parent.children()
    for attack in ("read_memory_of_other_process", "read_victims_memory", "kill_victim", "attach_debugger"):
        with pytest.raises(TaskFailed, match="PermissionError"):
            await sandbox.run(Call("attacks:attack", {"name": attack, "scene": {"victim": sibling.pid}}))
    sleeper.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeper


# What the other layers stop when one is missing, apart from the attacks that only the missing one stops.
STILL_REFUSED = [
    (
        "landlock",
        "read any file",
        [
            "read_environment_of_worker",
            "read_file",
            "read_password_file",
            "list_folder",
            "connect_unix",
            "connect_abstract",
            "create_file",
            "remove_file",
            "fork",
            "run_program",
            "kill_victim",
        ],
    ),
    (
        "mounts",
        "see names and sizes of any file",
        ["read_file", "list_folder", "read_password_file", "connect_unix", "create_file", "run_program"],
    ),
    (
        "seccomp",
        "open a socket",
        ["connect_tcp", "connect_abstract", "read_file", "create_file", "become_program", "kill_victim"],
    ),
]


@pytest.mark.parametrize(("layer", "open_to", "attacks"), STILL_REFUSED)
async def test_missing_layer_is_reported_and_the_others_hold(
    layer: str, open_to: str, attacks: list[str], scene: Scene
) -> None:
    command = [str(ATTACKS.parent / "lesser_kernel.py"), layer, platform.machine(), json.dumps(scene.arguments)]
    process = await asyncio.create_subprocess_exec(sys.executable, *command, *attacks, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    report = json.loads(output)
    assert list(report["missing"]) == [layer]
    reason = "not allowed on this system" if layer == "mounts" else "not supported by this kernel"
    assert report["missing"][layer].startswith(f"{reason}; a parser could")
    assert open_to in report["missing"][layer]
    assert f"missing: {layer}" in report["summary"]
    assert report["refused"] == attacks


async def test_every_layer_is_active_or_says_why_not(sandbox: Sandbox) -> None:
    layers = await sandbox.layers()
    assert [layer.name for layer in layers.layers] == [
        "limits",
        "environment",
        "capabilities",
        "no_new_privs",
        "mounts",
        "landlock",
        "seccomp",
    ]
    assert all(layer.detail for layer in layers.layers)
    assert layers.complete, layers.summary
    assert "missing" not in layers.summary
