"""A real S3 server (SeaweedFS): only a real one refuses wrong signatures and second writes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx

from octavo.storage import Bucket, open_bucket
from octavo.storage.s3_client import AccessKeys, presign
from tests.support.instance import free_port
from tests.support.processes import PATIENCE_SECONDS

START_ATTEMPTS = 3

# The server must not outlive the tests, even when they are killed, be it before the call.
DIE_WITH_PARENT = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True, slots=True)
class S3Server:
    """What a client needs to reach the server."""

    endpoint: str
    bucket: str
    region: str
    access_key: str
    secret_key: str

    def signed_url(self, method: str, key: str, query: Mapping[str, str] | None = None) -> str:
        """For what the bucket under test has no call for."""
        keys = AccessKeys(self.access_key, self.secret_key)
        url = f"{self.endpoint}/{self.bucket}/{key}".rstrip("/")
        now = datetime.now(UTC)
        return presign(method, url, query or {}, keys, region=self.region, seconds=60, now=now)


@contextmanager
def running_s3_server(secret_key: str = "test-secret") -> Generator[S3Server]:
    """Start a server in a folder of its own, and remove both at the end."""
    folder = Path(tempfile.mkdtemp(prefix="octavo-s3-"))
    try:
        process, server = _start(folder, secret_key)
        try:
            yield server
        finally:
            process.kill()
            process.wait()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def open_s3(server: S3Server, prefix: str) -> Bucket:
    return open_bucket(
        f"s3://{server.bucket}/{prefix}",
        endpoint=server.endpoint,
        region=server.region,
        access_key=server.access_key,
        secret_key=server.secret_key,
    )


def _start(folder: Path, secret_key: str) -> tuple[subprocess.Popen[bytes], S3Server]:
    """A free port can be taken by others before the server binds it, hence the attempts."""
    for attempt in range(START_ATTEMPTS):
        ports = [free_port() for _ in range(8)]
        server = S3Server(f"http://127.0.0.1:{ports[0]}", "octavo", "us-east-1", "test-access", secret_key)
        data = folder / str(attempt)
        data.mkdir()
        process = _launch(data, ports, server)
        if _takes_objects(process, server):
            return process, server
        process.kill()
        process.wait()
    log = (folder / str(START_ATTEMPTS - 1) / "log").read_text(errors="replace")
    raise RuntimeError(f"The S3 server did not start:\n{log[-2000:]}")


def _launch(data: Path, ports: list[int], server: S3Server) -> subprocess.Popen[bytes]:
    identity = {
        "name": "octavo",
        "credentials": [{"accessKey": server.access_key, "secretKey": server.secret_key}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    config = data / "identities.json"
    config.write_text(json.dumps({"identities": [identity]}))
    services = ("s3.port", "s3.port.grpc", "master.port", "master.port.grpc")
    services += ("volume.port", "volume.port.grpc", "filer.port", "filer.port.grpc")
    options = [f"-{name}={port}" for name, port in zip(services, ports, strict=True)]
    options += [f"-s3.config={config}", f"-bucket={server.bucket}", f"-dir={data}", "-ip=127.0.0.1"]
    options += [
        "-ip.bind=127.0.0.1",
        f"-s3.localSocket={data}/s3.sock",
        f"-filer.localSocket={data}/filer.sock",
    ]
    options += ["-webdav=false", "-admin.ui=false", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    options += ["-master.telemetry=false", "-s3.autoCreateBucket=false"]
    weed = str(Path(sys.executable).parent / "weed")
    command = [sys.executable, "-c", DIE_WITH_PARENT, str(os.getpid()), weed, "mini", *options]
    with (data / "log").open("wb") as log:
        return subprocess.Popen(command, cwd=data, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _takes_objects(process: subprocess.Popen[bytes], server: S3Server) -> bool:
    """The port is open about a second before the bucket exists and has room."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(httpx.TransportError):
            if httpx.put(server.signed_url("PUT", "started"), content=b"", timeout=PATIENCE_SECONDS).is_success:
                return True
        time.sleep(0.05)
    return False
