"""Build the documentation site from the Markdown files of the repository, and check all links between them.

    .venv/bin/python -m tools.make_site build/site

The pages need no server and load nothing from elsewhere. A link to a page, a heading, a picture or a file that does not
exist is an error, and nothing is written then.
"""

from __future__ import annotations

import argparse
import html
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tools.site_references import made_pages

ROOT = Path(__file__).parents[1]
PARTS = Path(__file__).parent / "site"
START = "README.md"
TITLES = {START: "Octavo"}
# The sections of the navigation: files and folders in the order in which they are shown.
SECTIONS: dict[str, tuple[str, ...]] = {
    "Start": (START, "CHANGELOG.md"),
    "Concepts": ("docs/architecture.md", "docs/glossary.md", "docs/state-machine.md", "docs/security-model.md"),
    "How to": ("docs/how-to",),
    "Run it": ("docs/deployment", "SECURITY.md"),
    "Reference": ("docs/reference", "docs/models"),
    "Compared": ("docs/compare.md",),
    "Decisions": ("docs/decisions",),
    "Contribute": ("CONTRIBUTING.md", "docs/seeds.md"),
}
MARKDOWN = MarkdownIt("commonmark", {"html": False}).enable("table")
DIAGRAM = "mermaid"
# In a separate process, because the library prints warnings when its process ends.
DRAW = "import sys, mermaidx; sys.stdout.write(mermaidx.render(sys.stdin.read()).svg())"
LINKS = {"link_open": "href", "image": "src"}


class BrokenLinks(Exception):
    """Links to pages, headings or files that do not exist."""


@dataclass(frozen=True)
class Page:
    """A Markdown file. `path` is relative to the root of the repository, with slashes."""

    path: str
    title: str
    tokens: list[Token]
    anchors: dict[str, str]

    @property
    def target(self) -> str:
        return page_address(self.path)


@dataclass
class Site:
    """The pages, and the other files that they show or link to. `made` has the Markdown of pages without a file."""

    root: Path
    made: dict[str, str] = field(default_factory=dict[str, str])
    pages: dict[str, Page] = field(default_factory=dict[str, Page])
    files: set[str] = field(default_factory=set[str])


def page_address(path: str) -> str:
    """Return the path of a Markdown file's page. The files `README.md` are the index pages of their folders."""
    folder, name = posixpath.split(path)
    return posixpath.join(folder, "index.html" if name == "README.md" else name.removesuffix(".md") + ".html")


def slug(heading: str) -> str:
    """Return the anchor of a heading, as code hosting sites make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def read_site(root: Path, made: Mapping[str, str] | None = None) -> Site:
    """Read all pages of the navigation and the pages that they link to. `made` has pages that are not files."""
    site = Site(root, dict(made or {}))
    waiting = [*_listed(root), *site.made]
    problems: list[str] = []
    while waiting:
        path = waiting.pop(0)
        if path not in site.pages:
            site.pages[path] = page = read_page(path, site.made.get(path) or (root / path).read_text())
            waiting += _follow(site, page, problems)
    problems += _missing_headings(site)
    if problems:
        raise BrokenLinks("\n".join(sorted(set(problems))))
    return site


def read_page(path: str, text: str) -> Page:
    tokens = MARKDOWN.parse(text)
    anchors: dict[str, str] = {}
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            text = _plain(inline)
            anchor, number = slug(text), 1
            while anchor in anchors:
                anchor, number = f"{slug(text)}-{number}", number + 1
            anchors[anchor] = text
            opening.attrSet("id", anchor)
    title = TITLES.get(path) or next(iter(anchors.values()), path)
    return Page(path, title, tokens, anchors)


def links(page: Page) -> Iterator[tuple[Token, str]]:
    """Return the links and pictures of a page that point into the repository."""
    for token in page.tokens:
        for child in token.children or ():
            if name := LINKS.get(child.type):
                address = str(child.attrGet(name) or "")
                if not urlsplit(address).scheme and not address.startswith("//"):
                    yield child, address


def resolve(root: Path, page: Page, address: str) -> tuple[str, str] | None:
    """Return the file in the repository and the heading that a link points to, or None if there is no such file."""
    parts = urlsplit(address)
    if not parts.path:
        return page.path, parts.fragment
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page.path), unquote(parts.path)))
    if path.startswith(("..", "/")):
        return None
    if (root / path).is_dir():
        path = posixpath.join(path, "README.md")
    return (path, parts.fragment) if (root / path).is_file() else None


def _follow(site: Site, page: Page, problems: list[str]) -> Iterator[str]:
    for _, address in links(page):
        if (found := resolve(site.root, page, address)) is None:
            problems.append(f"{page.path}: {address} does not exist")
        elif found[0].endswith(".md"):
            yield found[0]
        else:
            site.files.add(found[0])


def _missing_headings(site: Site) -> Iterator[str]:
    for page in site.pages.values():
        for _, address in links(page):
            found = resolve(site.root, page, address)
            if found and found[1] and found[0] in site.pages and found[1] not in site.pages[found[0]].anchors:
                yield f"{page.path}: {address} has no such heading"


def write_site(site: Site, folder: Path) -> None:
    templates = Environment(loader=FileSystemLoader(PARTS), autoescape=True, undefined=StrictUndefined)
    template = templates.get_template("page.html")
    sections = _navigation(site)
    for page in site.pages.values():
        file = folder / page.target
        file.parent.mkdir(parents=True, exist_ok=True)
        up = posixpath.relpath(".", posixpath.dirname(page.target) or ".")
        shown = template.render(page=page, body=render(site, page), sections=sections, up=up, outline=_outline(page))
        file.write_text(shown)
    for path in sorted(site.files):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(site.root / path, folder / path)
    shutil.copyfile(PARTS / "site.css", folder / "site.css")


def render(site: Site, page: Page) -> str:
    """Return the page's HTML. Links to Markdown files become links to their pages."""
    for number, token in enumerate(page.tokens):
        if token.type == "fence" and token.info.strip() == DIAGRAM:
            token.type, token.content = "html_block", draw_diagram(token.content, f"diagram-{number}")
    for token, address in links(page):
        found = resolve(site.root, page, address)
        if found and urlsplit(address).path and found[0] in site.pages:
            there = posixpath.relpath(page_address(found[0]), posixpath.dirname(page.target) or ".")
            token.attrSet("href", f"{there}#{found[1]}" if found[1] else there)
    shown = MARKDOWN.renderer.render(page.tokens, MARKDOWN.options, {})
    return re.sub(r"(<table>.*?</table>)", r'<div class="table">\1</div>', shown, flags=re.DOTALL)


def draw_diagram(source: str, name: str) -> str:
    """Draw a Mermaid diagram as a picture in the page. Its source is below it, for people who cannot see it.

    `name` is unique in the page, because the styles of a picture apply to the whole page.
    """
    drawn = subprocess.run([sys.executable, "-c", DRAW], input=source, capture_output=True, text=True, check=True)
    picture = drawn.stdout.replace("my-svg", name).replace("<svg ", '<svg role="img" aria-label="Diagram" ', 1)
    text = f"<details><summary>As text</summary><pre><code>{html.escape(source)}</code></pre></details>"
    return f'<figure class="diagram"><div>{picture}</div>{text}</figure>\n'


def _navigation(site: Site) -> dict[str, list[Page]]:
    chosen: dict[str, list[Page]] = {}
    for name, entries in SECTIONS.items():
        found = [path for entry in entries for path in _files(site.root, entry) if path in site.pages]
        found += [path for path in site.made if posixpath.dirname(path) in entries]
        chosen[name] = [site.pages[path] for path in found]
    return {name: pages for name, pages in chosen.items() if pages}


def _listed(root: Path) -> list[str]:
    return [path for entries in SECTIONS.values() for entry in entries for path in _files(root, entry)]


def _files(root: Path, entry: str) -> list[str]:
    if (root / entry).is_dir():
        return sorted(file.relative_to(root).as_posix() for file in (root / entry).glob("*.md"))
    return [entry] if (root / entry).is_file() else []


def _outline(page: Page) -> list[tuple[str, str]]:
    opened = [token.attrGet("id") for token in page.tokens if token.type == "heading_open" and token.tag == "h2"]
    return [(str(anchor), page.anchors[str(anchor)]) for anchor in opened]


def _plain(inline: Token) -> str:
    return "".join(child.content for child in inline.children or () if child.type in {"text", "code_inline"})


def main() -> int:
    parser = argparse.ArgumentParser(description=html.unescape(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    try:
        site = read_site(ROOT, made_pages())
    except BrokenLinks as broken:
        sys.stderr.write(f"{broken}\n")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    write_site(site, folder)
    sys.stdout.write(f"{len(site.pages)} pages in {folder}. Open {folder / 'index.html'}.\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
