"""`octavo analyse` and `octavo prompts`, from a file to the answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cli.test_documents_commands import Console, console, instance, working
from tests.support.analyses import sentence, write_book
from tests.support.instance import Instance

__all__ = ["console", "instance"]
ASKED = "What is the harbour fee of pier 7?"


@pytest.mark.parametrize(
    "command",
    [
        "analyse",
        *(f"analyses {one}" for one in ("ls", "stop", "resume", "rerun", "rm", "export")),
        *(f"prompts {one}" for one in ("ls", "add", "edit", "rm")),
    ],
)
def test_every_command_explains_itself(console: Console, command: str) -> None:
    said = console.say(*command.split(), "--help")
    assert f"octavo {command} " in said
    assert "--json" in said


def test_a_file_is_read_asked_and_answered(console: Console, instance: Instance) -> None:
    Path("harbour.pdf").write_bytes(write_book(12))
    with working(instance):
        found = console.read("analyse", "harbour.pdf", "--prompt", ASKED, "--watch")
        assert (found["analysis"]["status"], found["analysis"]["percent"]["overall"]) == ("completed", 100)
        (result,) = found["results"]
        assert sentence(7) in result["content"]
        assert any(one["page"] == 7 and one["verified"] for one in result["citations"])
        document = found["analysis"]["document_id"]
        said = console.run("analyse", document[-8:], "--prompt", ASKED, "--watch")
        analysis = found["analysis"]["id"]
        assert sentence(7) in console.say("analyses", "export", analysis[-8:])
        assert console.say("analyses", "export", analysis[-8:][:6].upper()) == console.say(
            "analyses", "export", analysis
        )
        console.say("analyses", "export", analysis, "--format", "csv", "--out", "answers.csv")
        assert "harbour fee of pier 7" in Path("answers.csv").read_text(encoding="utf-8-sig")
        assert "completed" in console.say("analyses", "ls")
        assert console.read("analyses", "stop", analysis)["status"] == "completed"  # it was over already
    assert said.returncode == 0
    assert sentence(7) in said.stdout
    assert "done" in said.stderr


def test_an_analysis_is_stopped_resumed_repeated_and_deleted_by_part_of_its_id(
    console: Console, instance: Instance
) -> None:
    Path("quay.pdf").write_bytes(write_book(4))
    with working(instance):
        answered = console.read("analyse", "quay.pdf", "--prompt", ASKED, "--watch")["analysis"]
    first = answered["id"]
    second = console.read("analyse", answered["document_id"], "--prompt", ASKED)["id"]
    assert console.read("analyses", "rerun", first[-8:])["status"] in {"queued", "analyzing"}
    assert console.read("analyses", "stop", first[-8:])["status"] == "stopped"
    assert "is resumed." in console.say("analyses", "resume", first[-8:][:6])
    assert "is stopped." in console.say("analyses", "stop", first)
    page = console.read("analyses", "ls", "--limit", "1")
    assert [one["id"] for one in page["items"]] == [second]
    after = console.read("analyses", "ls", "--limit", "1", "--cursor", page["next_cursor"])
    assert [one["id"] for one in after["items"]] == [first]
    ambiguous = console.refuse("analyses", "rm", first[:4])
    assert "matches more than one analysis: " in ambiguous
    assert f"{second} (" in ambiguous
    assert console.say("analyses", "rm", second[-8:]) == f"Analysis {second[-8:]} is deleted.\n"
    assert second not in [one["id"] for one in console.read("analyses", "ls")["items"]]
    assert "No analysis's id begins or ends with ffffffff" in console.refuse("analyses", "stop", "ffffffff")


def test_prompts_are_kept_changed_and_deleted(console: Console) -> None:
    made = console.read("prompts", "add", "Who pays?", "--title", "Payers", "--order", "3")
    assert (made["title"], made["execution_order"], made["version"]) == ("Payers", 3, 1)
    assert console.read("prompts", "edit", "payers", "--text", "Who pays whom?")["version"] == 2
    assert "Who pays whom?" in console.say("prompts", "ls")
    console.say("prompts", "rm", "Payers")
    assert "Payers" not in console.say("prompts", "ls")
    assert "Built-in prompts" in console.refuse("prompts", "rm", "Summary")


def test_a_dry_run_shows_the_cost_and_changes_nothing(console: Console) -> None:
    Path("harbour.pdf").write_bytes(write_book(12))
    before = console.read("ls")["items"]
    planned = console.read("analyse", "harbour.pdf", "--prompt", ASKED, "--dry-run")
    assert (planned["prompts"], planned["document"]["pages"]) == (1, 12)
    assert planned["document"]["estimate"]["analysis"] == {"usd": 0.0, "models": []}  # offline costs nothing
    (added,) = console.read("add", "harbour.pdf", "--extraction", "pages", "--dry-run")["documents"]
    assert (added["pages"], added["words"] > 100) == (12, True)
    assert "1 document, about 0.00 USD. Nothing was added." in console.say("add", "harbour.pdf", "--dry-run")
    assert console.read("ls")["items"] == before


def test_a_dry_run_of_a_retry_shows_the_cost_and_queues_nothing(console: Console, instance: Instance) -> None:
    Path("pier.pdf").write_bytes(write_book(3))
    with working(instance):
        (added,) = console.read("add", "pier.pdf", "--wait")["items"]
    document, jobs = added["document_id"], console.read("jobs", "ls")
    (planned,) = console.read("retry", document[-8:], "--extraction", "clean", "--dry-run")["documents"]
    assert (planned["pages"], planned["estimate"]["clean"]) == (3, {"usd": 0.0, "models": []})
    said = console.say("retry", document, "--dry-run")
    assert "1 document, about 0.00 USD." in said
    assert console.read("jobs", "ls") == jobs
    assert "begins or ends with 0000" in console.refuse("retry", "0000", "--dry-run")


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [("serch x", "'search'"), ("analysis ls", "'analyses'"), ("prompts ad x", "'add'")],
)
def test_a_mistyped_command_suggests_the_similar_one(console: Console, typed: str, suggested: str) -> None:
    result = console.run(*typed.split())
    assert (result.returncode, result.stdout) == (2, "")
    assert "Did you mean" in result.stderr
    assert suggested in result.stderr


def test_a_mistyped_option_suggests_the_similar_one(console: Console) -> None:
    result = console.run("add", "--colection", "Harbours", "a.pdf")
    assert result.returncode == 2
    assert "--collection" in result.stderr
