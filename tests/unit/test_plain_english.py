"""Everything a person reads is plain English: no phrase that docs/glossary.md replaces by an ordinary word."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.tree import ROOT, SOURCE

# For text in lower case. The first line saves most of the time: it is the first letter of all phrases.
BANNED = re.compile(
    r"""
    \b(?=[abcimostw])(?:
    \b(?:anew|whoever|whatever|whichever|stands)\b
    | \bin\ line\b(?!\ (?:with|comments?|break)|s)
    | (?<!there\ )\b(?:is|are|was|were)\ no\ (?!longer\b|more\b|later\b|earlier\b|less\b|worse\b|better\b)\w+
    | \bby\ (?:itself|themselves)\b
    | \b(?:is|are|was|were|been|being)\ (?:told|said)\b
    | \bmay\ not\ be\b
    | \bcomes?\ along\b
    | \bof\ (?:one['\u2019]s|its|their|his|your|our)\ own\b
    | \bat\ once\b
    | \b(?:say|says|tell|tells|ask|asks)\ of\b
    | (?:^|(?<=[.:;!]\ ))(?:who|what\ (?:is|was|are|were))\ (?=[^?]*[.;:](?:\s|$))
    )
    """,
    re.VERBOSE,
)
SOURCES = SOURCE / "octavo"
PROSE = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
# The glossary and the rule itself have to name the phrases.
EXEMPT = {ROOT / "docs" / "glossary.md"}
# Prompts are sent to models and have their own versions; samples are documents.
NOT_OURS = {"prompts", "samples"}
# Its strings are lists of words and patterns; only its docstrings are read.
WORD_LISTS = SOURCE / "octavo" / "language"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
FEWEST_WORDS = 3


def python_texts(path: Path) -> Iterator[tuple[int, str]]:
    """All docstrings, and all other string constants long enough to be read by a person."""
    source = path.read_text()
    if not BANNED.search(" ".join(source.split()).lower()):  # parsing takes a hundred times as long
        return
    for node in ast.walk(ast.parse(source)):
        if WORD_LISTS in path.parents and isinstance(node, DOCUMENTED):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""
        elif WORD_LISTS not in path.parents and isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value if len(node.value.split()) >= FEWEST_WORDS else ""


def markdown_text(text: str) -> str:
    """The prose alone: code, addresses and indented blocks are blanked, so that line numbers stay right."""
    code = r"```.*?```|`[^`\n]*`|\]\([^)\n]*\)|^ {4}[^\n]*$"
    return re.sub(code, _blank, text, flags=re.DOTALL | re.MULTILINE)


def template_text(text: str) -> str:
    """The words of a page: what Jinja computes, comments in the markup and style sheets are blanked."""
    code = r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<!--.*?-->|<(script|style)\b.*?</\1>"
    return re.sub(code, _blank, text, flags=re.DOTALL)


def comments_of_sql(path: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        _, dashes, comment = line.partition("--")
        if dashes and not comment.strip().startswith("name:"):
            yield number, comment.strip()


def _blank(found: re.Match[str]) -> str:
    return "".join("\n" if letter == "\n" else " " for letter in found[0])


def _files(pattern: str) -> list[Path]:
    return sorted(path for path in SOURCES.rglob(pattern) if not NOT_OURS & set(path.parts))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    yield from enumerate(text.splitlines(), 1)


def texts() -> Iterator[tuple[Path, int, str]]:
    """Every text that somebody reads, with its file and line."""
    for path in _files("*.py"):
        yield from ((path, *text) for text in python_texts(path))
    for path in _files("*.html"):
        yield from ((path, *text) for text in _lines(template_text(path.read_text())))
    for path in _files("*.js"):
        yield from ((path, *text) for text in _lines(path.read_text()))
    for path in _files("*.sql"):
        yield from ((path, *text) for text in comments_of_sql(path))
    for path in PROSE:
        if path not in EXEMPT:
            yield from ((path, *text) for text in _lines(markdown_text(path.read_text())))


def banned_phrases() -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{line}: {found[0]!r} in {' '.join(text.split())[:100]!r}"
        for path, line, text in texts()
        for found in BANNED.finditer(text.lower())
    ]


def test_no_text_for_people_has_a_banned_phrase() -> None:
    found = banned_phrases()
    assert not found, f"{len(found)} banned phrases; docs/glossary.md has the plain words:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "The text is written anew.",
        "Whoever comes later waits.",
        "The job stands in the table.",
        "51st in line",
        "This is no whole number",
        "It is tried again by itself.",
        "The owner is told.",
        "A name may not be empty.",
        "Who asks pays for it.",
        "All of it at once.",
        "A process of its own.",
        "What is large belongs in the input.",
    ],
)
def test_the_old_phrases_are_found(text: str) -> None:
    assert BANNED.search(text.lower())


@pytest.mark.parametrize(
    "text",
    [
        "There is no document with this id.",
        "The job is no longer in the queue.",
        "This is in line with RFC 9457.",
        "Who can read it?",
        "A name must not be empty.",
    ],
)
def test_ordinary_sentences_pass(text: str) -> None:
    assert not BANNED.search(text.lower())


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in banned_phrases()))
