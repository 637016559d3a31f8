"""A worker on a kernel that lacks a layer: a filter of its own takes the layer's system call away."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import struct
import sys
from pathlib import Path

from octavo.sandbox import JSON, Call, Sandbox, TaskFailed

# Load a word; skip the next two instructions unless it equals the value; answer with an error.
NUMBER, FIRST_ARGUMENT = 0, 16
FAIL, ALLOW = 0x00050000, 0x7FFF0000
EPERM, EINVAL, ENOSYS = 1, 22, 38
UNSHARE = {"x86_64": 272, "aarch64": 97}
CREATE_RULESET = 444
PRCTL = {"x86_64": 157, "aarch64": 167}
PR_GET_SECCOMP = 21


def take_away(layer: str, machine: str) -> None:
    load, equal, answer = 0x20, 0x15, 0x06
    if layer == "mounts":
        program = [(load, 0, 0, NUMBER), (equal, 0, 1, UNSHARE[machine]), (answer, 0, 0, FAIL | EPERM)]
    elif layer == "landlock":
        program = [(load, 0, 0, NUMBER), (equal, 0, 1, CREATE_RULESET), (answer, 0, 0, FAIL | ENOSYS)]
    else:
        program = [
            (load, 0, 0, NUMBER),
            (equal, 0, 3, PRCTL[machine]),
            (load, 0, 0, FIRST_ARGUMENT),
            (equal, 0, 1, PR_GET_SECCOMP),
            (answer, 0, 0, FAIL | EINVAL),
        ]
    program.append((answer, 0, 0, ALLOW))
    instructions = b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
    libc = ctypes.CDLL(None)
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(kept := ctypes.create_string_buffer(instructions)))
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, header, 0, 0) == 0
    del kept


async def main(arguments: dict[str, JSON]) -> None:
    take_away(sys.argv[1], sys.argv[2])
    refused: list[str] = []
    arguments["worker"] = os.getpid()
    async with Sandbox(readable=[Path(__file__).parent]) as sandbox:
        assert (await sandbox.run(Call("innocent:use_threads"))).value is True
        layers = await sandbox.layers()
        for attack in sys.argv[4:]:
            try:
                await sandbox.run(
                    Call("attacks:attack", {"name": attack, "scene": arguments}), input_file=Path(__file__)
                )
            except TaskFailed:
                refused.append(attack)
    missing = {layer.name: layer.detail for layer in layers.layers if not layer.active}
    print(json.dumps({"missing": missing, "summary": layers.summary, "refused": refused}))  # noqa: T201


asyncio.run(main(json.loads(sys.argv[3])))
