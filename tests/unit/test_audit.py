"""`make audit` names what is wrong with a pinned dependency, and never calls safe what it could not check."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tools import audit
from tools.audit import Pin, judge_release, main, read_pins

GOOD, OTHER = "a" * 64, "b" * 64
LOCKED = f"""# a comment
good==1.0 \\
    --hash=sha256:{GOOD} \\
    --hash=sha256:{OTHER}
    # via octavo
Weak[extra]==2.0 ; python_version < '3.12' \\
    --hash=sha256:{GOOD}
"""


def file_of(digest: str, *, yanked: bool = False) -> dict[str, Any]:
    return {"digests": {"sha256": digest}, "yanked": yanked, "yanked_reason": "it breaks" if yanked else None}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A server with these answers by path; everything else is not found. No other server is asked."""
    answers: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path in answers else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answers.get(self.path)).encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the library
            """Tests look at the output of the audit."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(audit, "REGISTRY", address)
    monkeypatch.setattr(audit, "OSV", f"{address}/osv")
    try:
        yield answers
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_all_pins_are_read_with_their_hashes() -> None:
    assert read_pins(LOCKED.splitlines()) == [
        Pin("good", "1.0", frozenset({GOOD, OTHER})),
        Pin("weak", "2.0", frozenset({GOOD})),
    ]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([file_of(GOOD), file_of(OTHER)], []),
        ([file_of(GOOD)], []),
        ([], ["the registry has no such release"]),
        ([file_of(OTHER)], ["1 of 1 hashes are not those of the registry's files"]),
        ([file_of(GOOD, yanked=True), file_of(OTHER, yanked=True)], ["withdrawn: it breaks"]),
    ],
)
def test_a_release_that_is_gone_withdrawn_or_changed_is_named(files: list[dict[str, Any]], said: list[str]) -> None:
    assert judge_release(Pin("good", "1.0", frozenset({GOOD})), files) == [f"good 1.0: {one}" for one in said]


def audited(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    (folder / "locked.txt").write_text(LOCKED)
    code = main([str(folder / "locked.txt")])
    return code, capsys.readouterr().out


def test_a_vulnerable_release_is_named(
    registry: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weak = [{"id": "PYSEC-1", "fixed_in": ["2.1"]}, {"id": "PYSEC-2", "withdrawn": "2026-01-02"}]
    for path, found in (("/jinja2/2.11.2", [{"id": "PYSEC-0"}]), ("/good/1.0", []), ("/weak/2.0", weak)):
        registry[f"{path}/json"] = {"vulnerabilities": found}
    registry["/good/json"] = {"releases": {"1.0": [file_of(GOOD), file_of(OTHER)]}}
    registry["/weak/json"] = {"releases": {"2.0": [file_of(GOOD)]}}
    code, said = audited(tmp_path, capsys)
    assert said.splitlines() == [
        "weak 2.0: PYSEC-1 (fixed in 2.1)",
        "2 pinned releases: 1 findings, 0 checks not possible.",
    ]
    assert code == 1


def test_a_database_that_knows_nothing_or_is_away_is_not_believed(
    registry: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    registry["/jinja2/2.11.2/json"] = {"vulnerabilities": []}
    registry["/good/json"] = {"releases": {"1.0": [file_of(GOOD), file_of(OTHER)]}}
    code, said = audited(tmp_path, capsys)
    assert "no database can be reached: PyPI (it does not know the vulnerability of jinja2 2.11.2); OSV (" in said
    assert "weak 2.0: its releases were not checked" in said
    assert code == 2
