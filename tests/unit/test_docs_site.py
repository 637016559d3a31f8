"""The documentation site has a page for every Markdown file, and no link leads nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.web.rooms.system.reference import Answer, Body, Field, Operation
from tools.make_site import ROOT, BrokenLinks, read_site, write_site
from tools.site_references import API, COMMANDS, describe_operation, made_pages


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        file = root / f"{name.replace('__', '/')}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_all_links_of_the_documentation_lead_somewhere() -> None:
    pages = read_site(ROOT).pages
    assert {file.relative_to(ROOT).as_posix() for file in (ROOT / "docs").rglob("*.md")} <= set(pages)


@pytest.mark.long  # describing all routes takes seconds; `make docs-site` does the same
def test_commands_and_routes_have_reference_pages_with_working_links() -> None:
    made = made_pages()
    assert {COMMANDS, API} <= set(read_site(ROOT, made).pages)
    for command in ("octavo add", "octavo keys add"):
        assert f"## {command}\n" in made[COMMANDS]
    assert "`--duplicates reuse\\|new\\|reject`" in made[COMMANDS]
    assert "| `200` | OK | Document as `application/json` |" in made[API]
    assert "### Document\n" in made[API]


def test_a_route_is_described_with_parameters_answers_and_errors() -> None:
    parameter = Field("trashed", "query", "boolean", None, required=False, text="Also in the trash | or not.")
    found = Answer("200", "OK", [Body("application/json", "Document", [], "")], is_problem=False)
    missing = Answer("404", "Not found.", [], is_problem=True)
    one = Operation("get_document", "GET", "/documents/{id}", "Show it.", [parameter], [], [found, missing], "")
    assert "\n".join(describe_operation(one, "GET `/documents/{id}`")) == (
        "### GET `/documents/{id}`\n\nShow it.\n\n"
        "| Parameter | In | Type | Meaning |\n|---|---|---|---|\n"
        "| `trashed` | query | boolean | Also in the trash \\| or not. |\n\n"
        "| Status | Meaning | Body |\n|---|---|---|\n| `200` | OK | Document as `application/json` |\n\n"
        "Errors: `404` Not found.\n"
    )


def test_a_diagram_is_drawn_and_its_source_stays(tmp_path: Path) -> None:
    write(tmp_path, README="# Octavo\n\n```mermaid\nflowchart LR\n    one[A & B] --> two\n```\n")
    write_site(read_site(tmp_path), tmp_path / "site")
    page = (tmp_path / "site/index.html").read_text()
    assert '<figure class="diagram"><div><svg role="img"' in page
    assert "one[A &amp; B] --&gt; two" in page
    assert "<script" not in page


def test_links_to_markdown_files_become_links_to_their_pages(tmp_path: Path) -> None:
    guide = "# Add\n\n## From a folder\n\nBack to [the start](../../README.md), or to [the top](#add). ![A](a.png)\n"
    write(tmp_path, README="# Octavo\n\n[Add](docs/how-to/add.md#from-a-folder)\n", **{"docs__how-to__add": guide})
    (tmp_path / "docs/how-to/a.png").write_bytes(b"picture")
    write_site(read_site(tmp_path), tmp_path / "site")
    start, page = tmp_path / "site/index.html", tmp_path / "site/docs/how-to/add.html"
    assert 'href="docs/how-to/add.html#from-a-folder"' in start.read_text()
    assert 'href="../../index.html"' in page.read_text()
    assert '<h2 id="from-a-folder">' in page.read_text()
    assert 'href="../../site.css"' in page.read_text()
    assert (tmp_path / "site/docs/how-to/a.png").read_bytes() == b"picture"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[gone](gone.md)", "README.md: gone.md does not exist"),
        ("![gone](gone.png)", "README.md: gone.png does not exist"),
        ("[gone](other.md#gone)", "README.md: other.md#gone has no such heading"),
        ("[gone](#gone)", "README.md: #gone has no such heading"),
        ("[outside](../secret.md)", "README.md: ../secret.md does not exist"),
    ],
)
def test_a_link_that_leads_nowhere_is_reported(tmp_path: Path, text: str, problem: str) -> None:
    write(tmp_path, README=f"# Octavo\n\n{text}\n\n[Other](other.md#there) [Site](https://example.org/x.md)\n")
    write(tmp_path, other="# There\n")
    with pytest.raises(BrokenLinks, match=problem.replace(".", r"\.")):
        read_site(tmp_path)


def test_markup_in_a_file_is_shown_as_text(tmp_path: Path) -> None:
    write(tmp_path, README="# Octavo\n\nSee <script>alert(1)</script>\n")
    write_site(read_site(tmp_path), tmp_path / "site")
    assert "<script>" not in (tmp_path / "site/index.html").read_text()
