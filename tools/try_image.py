"""Runs the steps of deploy/Dockerfile without a container engine, and tries the result as the image would run.

    mmdebstrap --variant=minbase --include=python3,python3-venv,python3-pip,ca-certificates bookworm BASE
    chroot BASE pip install --break-system-packages --ignore-installed pip setuptools wheel
    chroot BASE apt-get purge --yes python3-pip python3-wheel python3-setuptools
    python tools/try_image.py BASE WORK

BASE is a folder with a Debian root, in place of the image `python:3.11-slim-bookworm`. WORK is a folder for the stages.
Needs root and Linux. The result runs without privileges, on a root file system that is mounted read-only, with only
/data and /tmp writable. The instructions FROM, RUN, COPY, ENV, WORKDIR and USER are executed; the others are read.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
# What people rely on, tried by the account of the image.
TRIAL = """
set -eu
test "$(id -u)" = 10001
! touch /opt/octavo/written 2>/dev/null || { echo 'the root file system is writable'; exit 1; }
for tool in pip pip3 gcc cc make uv; do ! command -v $tool >/dev/null || { echo "$tool is installed"; exit 1; }; done
octavo up >/tmp/up.log 2>&1 &
for _ in $(seq 600); do grep -q 'Ctrl-C stops' /tmp/up.log && break; sleep 0.2; done
grep -v token= /tmp/up.log
{health}
echo 'The keeper lit the vermilion lamp at dusk.' > /tmp/keeper.txt
octavo add /tmp/keeper.txt --wait
octavo search 'vermilion lamp' | grep -q vermilion
octavo sign-in 2>/dev/null | grep -q '^http://docs.example.test/sign-in'
octavo doctor
octavo stop
echo 'The image works.'
"""
START = """
set -eu
mount --make-rprivate /
mount --bind {root} {root}
mount --bind {data} {root}/data
mount --rbind /dev {root}/dev
mount -t proc proc {root}/proc
mount -t tmpfs -o mode=1777 tmpfs {root}/tmp
mount -o remount,ro,bind {root}
exec chroot {root} setpriv --reuid {user} --regid {user} --clear-groups --no-new-privs --bounding-set=-all \
    --inh-caps=-all env -i {environment} sh -c {trial}
"""


@dataclass(slots=True)
class Stage:
    root: Path
    environment: dict[str, str] = field(
        default_factory=lambda: {"PATH": "/usr/local/bin:/usr/bin:/usr/sbin:/bin:/sbin"}
    )
    folder: str = "/"
    user: str = "0:0"
    health: list[str] = field(default_factory=list[str])


def read_instructions(text: str) -> list[tuple[str, str]]:
    lines = "\n".join(line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    joined = re.sub(r"\\\n\s*", " ", lines)
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in joined.splitlines())]


def build(base: Path, work: Path) -> Stage:
    stages: dict[str, Stage] = {}
    stage = Stage(base)
    for name, rest in read_instructions((ROOT / "deploy/Dockerfile").read_text()):
        print(name, rest[:100], flush=True)
        if name == "FROM":
            label = rest.partition(" AS ")[2] or "final"
            stage = stages[label] = Stage(make_root(base, work / label))
        elif name == "RUN":
            run(stage, rest)
        elif name == "COPY":
            copy(stage, rest, stages)
        elif name == "ENV":
            pairs = (one.partition("=") for one in shlex.split(rest))
            stage.environment |= {key: value.replace("$PATH", stage.environment["PATH"]) for key, _, value in pairs}
        elif name == "WORKDIR":
            stage.folder = rest
            (stage.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif name == "USER":
            stage.user = rest
        elif name == "HEALTHCHECK":
            stage.health = json.loads(rest.partition("CMD ")[2])
    return stage


def make_root(base: Path, root: Path) -> Path:
    shutil.rmtree(root, ignore_errors=True)
    subprocess.run(["cp", "--archive", base, root], check=True)
    (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")  # where the base image has it
    for file in (CERTIFICATES, Path("/etc/resolv.conf"), Path("/etc/hosts")):
        shutil.copy(file, root / str(file).lstrip("/"))
    return root


def run(stage: Stage, command: str) -> None:
    # Debian refuses to remove its own pip unless the variable is set; the base image has no such check.
    here = {"PIP_BREAK_SYSTEM_PACKAGES": "1", "UV_SYSTEM_CERTS": "1"}
    here |= {"PIP_CERT": str(CERTIFICATES), "SSL_CERT_FILE": str(CERTIFICATES)}
    script = f"cd {stage.folder} && {command}"
    environment = stage.environment | here | {"HOME": "/root"}
    subprocess.run(["chroot", stage.root, "sh", "-c", script], env=environment, check=True)


def copy(stage: Stage, rest: str, stages: dict[str, Stage]) -> None:
    words = shlex.split(rest)
    context = ROOT
    if words[0].startswith("--from="):
        context = stages[words.pop(0).removeprefix("--from=")].root
    *sources, target = words
    inside = stage.root / os.path.join(stage.folder, target).lstrip("/")  # noqa: PTH118 - the target may be absolute
    for source in sources:
        found = context / source.lstrip("/")
        place = inside / found.name if target.endswith("/") else inside
        place.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "--archive", "--no-target-directory", found, place], check=True)


def try_result(stage: Stage, work: Path) -> int:
    data = work / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(mode=0o700)
    user = int(stage.user.partition(":")[0])
    os.chown(data, user, user)
    settings = stage.environment | {
        "OCTAVO_PUBLIC_URL": "http://docs.example.test",
        "OCTAVO_PORT": "8497",
        "HOME": "/data",
    }
    health = shlex.join(stage.health).replace("8400", "8497")
    script = START.format(
        root=stage.root,
        data=data,
        user=user,
        environment=" ".join(shlex.quote(f"{name}={value}") for name, value in settings.items()),
        trial=shlex.quote(TRIAL.replace("{health}", health)),
    )
    return subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script], check=False
    ).returncode


def main() -> None:
    base, work = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    work.mkdir(parents=True, exist_ok=True)
    sys.exit(try_result(build(base, work), work))


if __name__ == "__main__":
    main()
