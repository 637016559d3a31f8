"""A new sign-in link while Octavo runs, the words of the pages for stages, and completion in the shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.integration.cli.test_documents_commands import Console, console, instance, working, write
from tests.support.analyses import write_book
from tests.support.instance import free_port
from tests.support.processes import octavo_environment, run_octavo

__all__ = ["console", "instance"]
SCRIPTS = {"bash": "complete -o default", "zsh": "compdef", "fish": "complete --command octavo"}
FILES = {"bash": ".bash_completions/octavo.sh", "zsh": ".zfunc/_octavo", "fish": ".config/fish/completions/octavo.fish"}


# Signing in ---------------------------------------------------------------------------------------------------------


def sign_in(link: str) -> httpx.Response:
    address, query = link.split("?")
    return httpx.post(address, data={"token": parse_qs(query)["token"][0]})


def kind_of(signed_in: httpx.Response, link: str) -> str:
    base = "{0.scheme}://{0.netloc}".format(urlsplit(link))
    return httpx.get(f"{base}/api/v1/session", cookies=signed_in.cookies).json()["kind"]


def test_sign_in_prints_a_link_that_signs_in_once_and_differs_from_the_link_of_up(console: Console) -> None:
    said = console.run("sign-in")
    assert said.returncode == 0, said
    link = said.stdout.strip()
    assert link.startswith("http://")
    assert link != console.instance.sign_in_link()
    assert "works once" in said.stderr
    first = sign_in(link)
    assert kind_of(first, link) == kind_of(sign_in(console.read("sign-in")["url"]), link) != "anonymous"
    assert not sign_in(link).cookies


def test_sign_in_says_that_octavo_is_not_running_and_starts_nothing(folder: Path) -> None:
    result = run_octavo(["sign-in"], octavo_environment(folder / "data"))
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "octavo: Octavo is not running. Start it with `octavo up`.\n"
    assert not (folder / "data").exists()


def test_sign_in_says_that_the_database_cannot_be_reached(console: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv("OCTAVO_DATABASE_URL", f"postgresql://nobody:canary@127.0.0.1:{port}/none")
    line = console.refuse("sign-in")
    assert f"127.0.0.1:{port}" in line
    assert "canary" not in line


# Stages -------------------------------------------------------------------------------------------------------------


def test_stages_are_shown_as_on_the_pages_and_as_codes_in_json(console: Console) -> None:
    with working(console.instance):
        (added,) = console.read("add", str(write("stages.md")), "--wait")["items"]
    job = console.read("show", added["document_id"])["process_id"]
    codes = {one["stage"] for one in console.read("jobs", "show", job)["stages"]}
    assert {"extracted", "enriched", "embedded"} <= codes
    shown = console.say("jobs", "show", job)
    assert {"Reading pages", "Describing", "Indexing"} <= {line.strip().split("  ")[0] for line in shown.splitlines()}
    assert not [code for code in codes if code in shown]
    (row,) = [line for line in console.say("jobs", "ls").splitlines() if line.startswith(job)]
    assert not [code for code in codes if code in row]


# Conversions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "hint"),
    [("invoce_v1", "Did you mean invoice_v1"), ("Receipt_v1", "Did you mean receipt_v1"), ("nope", "Choose one of ")],
)
def test_a_mistyped_mapping_is_refused_before_anything_exists(console: Console, typed: str, hint: str) -> None:
    Path("invoice.pdf").write_bytes(write_book(1))
    jobs = console.query("SELECT count(*) FROM jobs")
    line = console.refuse("convert", "invoice.pdf", "--mapping", typed, "--out", "xml")
    assert f"There is no mapping '{typed}'. {hint}" in line
    assert not Path("xml").exists()
    assert console.query("SELECT count(*) FROM jobs") == jobs
    assert console.query("SELECT count(*) FROM conversions") == [(0,)]


def test_a_conversion_is_found_by_any_unique_part_of_its_id(console: Console) -> None:
    Path("one.pdf").write_bytes(write_book(1))
    Path("two.pdf").write_bytes(write_book(2))
    with working(console.instance):
        console.run("convert", "one.pdf", "two.pdf", "--mapping", "receipt_v1", "--out", "xml")
    first, second = (one["id"] for one in console.read("conversions", "ls")["items"])
    for part in (first, first[-8:], first[-8:][:6].upper()):
        assert console.read("conversions", "show", part)["id"] == first
    ambiguous = console.refuse("conversions", "show", first[:4])
    assert f"{first} (" in ambiguous
    assert f"{second} (" in ambiguous
    assert "No conversion's id" in console.refuse("conversions", "rm", "ffffffff")
    for one in (first, second):
        console.say("conversions", "rm", one[-8:])


# Completion ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def at_home(home: Path) -> dict[str, str]:
    return octavo_environment(home / "data") | {"HOME": str(home)}


@pytest.mark.parametrize("shell", SCRIPTS)
def test_completion_shows_and_installs_the_script_of_a_shell(shell: str, home: Path) -> None:
    shown = run_octavo(["completion", "show", shell], at_home(home))
    assert shown.returncode == 0, shown
    assert SCRIPTS[shell] in shown.stdout
    assert list(home.iterdir()) == []
    installed = run_octavo(["completion", "install", shell], at_home(home))
    assert installed.returncode == 0, installed
    file = home / FILES[shell]
    assert file.read_text().strip() == shown.stdout.strip()
    assert f"written to {file}." in installed.stdout
    assert "To enable it in this one, run: " in installed.stdout


def test_installing_completion_keeps_the_startup_file_and_adds_one_line_to_it(home: Path) -> None:
    (home / ".bashrc").write_text("alias ll='ls -l'\n")
    for _ in range(2):
        assert run_octavo(["completion", "install", "bash"], at_home(home)).returncode == 0
    lines = (home / ".bashrc").read_text().split("\n")
    assert [line for line in lines if line] == ["alias ll='ls -l'", f"source '{home / FILES['bash']}'"]


def test_completion_detects_the_shell_and_refuses_an_unknown_one(home: Path) -> None:
    command = f"'{sys.executable}' -m octavo completion show; exit $?"
    result = subprocess.run(
        [shutil.which("bash") or "bash", "-c", command], env=at_home(home), capture_output=True, text=True, check=False
    )
    assert SCRIPTS["bash"] in result.stdout, result
    assert run_octavo(["completion", "show", "tcsh"], at_home(home)).returncode == 2


def test_completion_says_which_file_cannot_be_written(home: Path) -> None:
    (home / ".bash_completions").write_text("a file")
    result = run_octavo(["completion", "install", "bash"], at_home(home))
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert str(home / ".bash_completions") in result.stderr


TYPED = {
    "octavo analyses re": "resume rerun",
    "octavo add --col": "--collection",
    "octavo sig": "sign-in",
    "octavo completion show fi": "fish",
}


def test_tab_in_bash_completes_commands_and_options(home: Path) -> None:
    check_completions(home, dict(list(TYPED.items())[:2]))


@pytest.mark.long
def test_tab_in_bash_completes_every_kind_of_word(home: Path) -> None:
    check_completions(home, TYPED)


def check_completions(home: Path, typed: dict[str, str]) -> None:
    """Every completion starts the real command."""
    run_octavo(["completion", "install", "bash"], at_home(home))
    lines = "\n".join(f"complete_words {words}" for words in typed)
    script = f"""
        source '{home / FILES["bash"]}'
        complete_words() {{
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
            _octavo_completion octavo
            echo "${{COMPREPLY[@]}}"
        }}
        {lines}
    """
    environment = at_home(home) | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    result = subprocess.run(
        [shutil.which("bash") or "bash", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert result.stdout.splitlines() == list(typed.values()), result
