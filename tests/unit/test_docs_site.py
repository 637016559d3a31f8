"""The documentation site has a page for every Markdown file, and no link leads nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.make_site import ROOT, BrokenLinks, read_site, write_site


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        file = root / f"{name.replace('__', '/')}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_all_links_of_the_documentation_lead_somewhere() -> None:
    pages = read_site(ROOT).pages
    assert {file.relative_to(ROOT).as_posix() for file in (ROOT / "docs").rglob("*.md")} <= set(pages)


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
