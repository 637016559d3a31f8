"""A worker of its own, for tests that kill it: prints the numbers of its processes once a child is busy."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import psutil

from octavo.sandbox import Call, Sandbox


async def main() -> None:
    busy = asyncio.Event()
    async with Sandbox(readable=[Path(__file__).parent]) as sandbox:
        task = asyncio.create_task(sandbox.run(Call("deaths:sleep_for_ever"), on_progress=lambda _progress: busy.set()))
        await busy.wait()
        processes = psutil.Process().children(recursive=True)
        print(json.dumps([os.getpid(), *(process.pid for process in processes)]), flush=True)  # noqa: T201
        await task


asyncio.run(main())
