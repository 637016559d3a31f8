# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Checks pinned dependencies: known vulnerabilities, withdrawn releases, and hashes that the registry does not know.

    make audit

Vulnerabilities come from PyPI, or from OSV if PyPI is behind a mirror that does not pass them on. A database counts
only if it knows an old vulnerability: one that knows nothing would call everything safe. The exit code is 1 if there
are findings, and 2 if there are none but something could not be checked.
"""

from __future__ import annotations

import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REGISTRY = "https://pypi.org/pypi"
OSV = "https://api.osv.dev/v1"
SECONDS, IN_PARALLEL = 30, 8
PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
FINDINGS, UNCHECKED = 1, 2


@dataclass(frozen=True, slots=True)
class Pin:
    name: str
    version: str
    hashes: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


# Vulnerable since 2020 (CVE-2020-28493); every database that works knows it.
KNOWN = Pin("jinja2", "2.11.2")


class Unreachable(Exception):
    """The server did not answer, or does not have what was asked for."""


def read_pins(lines: Iterable[str]) -> list[Pin]:
    """The pins of a lock file with their hashes."""
    pins: list[Pin] = []
    for line in lines:
        if found := PINNED.match(line):
            pins.append(Pin(found[1].lower(), found[2]))
        elif pins and (hashed := HASH.search(line)):
            last = pins.pop()
            pins.append(Pin(last.name, last.version, last.hashes | {hashed[1]}))
    return pins


def fetch(url: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {"content-type": "application/json", "user-agent": "octavo-audit"})
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            return json.load(answer)
    except (urllib.error.URLError, TimeoutError, ValueError) as error:
        raise Unreachable(f"{url}: {error}") from None


# Vulnerabilities ----------------------------------------------------------------------------------------------------


def ask_pypi(pins: list[Pin]) -> dict[Pin, list[str]]:
    """The vulnerabilities of releases, as PyPI lists them."""

    def ask(pin: Pin) -> list[str]:
        found = fetch(f"{REGISTRY}/{pin.name}/{pin.version}/json")["vulnerabilities"]
        return [describe(one) for one in found if not one.get("withdrawn")]

    with ThreadPoolExecutor(IN_PARALLEL) as pool:
        return dict(zip(pins, pool.map(ask, pins), strict=True))


def describe(vulnerability: dict[str, Any]) -> str:
    fixed = ", ".join(vulnerability.get("fixed_in") or ()) or "no release yet"
    return f"{vulnerability['id']} (fixed in {fixed})"


def ask_osv(pins: list[Pin]) -> dict[Pin, list[str]]:
    """The vulnerabilities of releases, as OSV lists them."""
    queries = [{"package": {"name": pin.name, "ecosystem": "PyPI"}, "version": pin.version} for pin in pins]
    results = fetch(f"{OSV}/querybatch", {"queries": queries})["results"]
    return {pin: [one["id"] for one in found.get("vulns", ())] for pin, found in zip(pins, results, strict=True)}


SOURCES: dict[str, Callable[[list[Pin]], dict[Pin, list[str]]]] = {"PyPI": ask_pypi, "OSV": ask_osv}


def find_vulnerabilities(pins: list[Pin]) -> tuple[list[str], list[str]]:
    """The vulnerabilities, and what could not be checked."""
    reasons: list[str] = []
    for name, ask in SOURCES.items():
        try:
            if ask([KNOWN])[KNOWN]:
                return [f"{pin}: {one}" for pin, found in ask(pins).items() for one in found], []
            reasons.append(f"{name} (it does not know the vulnerability of {KNOWN})")
        except Unreachable as error:
            reasons.append(f"{name} ({error})")
    return [], [f"Vulnerabilities were not checked, because no database can be reached: {'; '.join(reasons)}."]


# Releases -----------------------------------------------------------------------------------------------------------


def check_releases(pins: list[Pin]) -> tuple[list[str], list[str]]:
    """Withdrawn releases and unknown hashes, and what could not be checked."""
    findings: list[str] = []
    unchecked: list[str] = []

    def ask(pin: Pin) -> Any:  # noqa: ANN401 - JSON
        try:
            return fetch(f"{REGISTRY}/{pin.name}/json")["releases"].get(pin.version, [])
        except Unreachable as error:
            return str(error)

    with ThreadPoolExecutor(IN_PARALLEL) as pool:
        for pin, files in zip(pins, pool.map(ask, pins), strict=True):
            if isinstance(files, str):
                unchecked.append(f"{pin}: its releases were not checked ({files}).")
            else:
                findings += judge_release(pin, files)
    return findings, unchecked


def judge_release(pin: Pin, files: list[dict[str, Any]]) -> list[str]:
    """What is wrong with a pinned release, by the registry's list of its files."""
    if not files:
        return [f"{pin}: the registry has no such release"]
    findings = [f"{pin}: withdrawn: {one['yanked_reason'] or 'no reason given'}" for one in files if one["yanked"]][:1]
    if unknown := pin.hashes - {one["digests"]["sha256"] for one in files}:
        findings.append(f"{pin}: {len(unknown)} of {len(pin.hashes)} hashes are not those of the registry's files")
    return findings


def main(files: list[str]) -> int:
    locked = {(pin.name, pin.version): pin for file in files for pin in read_pins(Path(file).read_text().splitlines())}
    pins = list(locked.values())
    results = find_vulnerabilities(pins), check_releases(pins)
    findings, unchecked = ([line for result in results for line in result[kind]] for kind in (0, 1))
    for line in (*findings, *unchecked):
        print(line)
    print(f"{len(pins)} pinned releases: {len(findings)} findings, {len(unchecked)} checks not possible.")
    return FINDINGS if findings else UNCHECKED if unchecked else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
