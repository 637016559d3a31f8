"""Keeps characters of plain text from meaning something in Markdown. What means nothing anyway stays as it is."""

from __future__ import annotations

import re

from octavo.extract.markdown import line_syntax

_MEANINGFUL = re.compile(
    r"""
    \\(?=[!-/:-@\[-`{-~]|$)                # would escape, or break the line
  | `
  | \*(?=\S) | (?<=\S)\*                   # emphasis, unless it stands between spaces
  | (?<![^\W_])_(?=\S) | (?<=\S)_(?![^\W_])  # emphasis, unless inside a word
  | \](?=[(:])                             # a link, or what a link by reference refers to
  | <(?=[A-Za-z/!?])                       # a tag
  | &(?=\#?[A-Za-z0-9]{1,32};)             # an entity
  | ~(?=~) | (?<=~)~                       # struck out
    """,
    re.VERBOSE,
)
_NUMBER = re.compile(r"\d{1,9}(?=[.)])")


def escape(line: str) -> str:
    """One line of text as one line of Markdown, wherever in a paragraph or a list item it stands."""
    return escape_start(escape_inside(line.strip()))


def escape_inside(text: str) -> str:
    """For text in the middle of a line: behind the marks of a heading, or in a cell."""
    return _MEANINGFUL.sub(r"\\\g<0>", text)


def escape_start(escaped: str) -> str:
    """A line whose inside is escaped already, for where a block could begin with it."""
    if not _begins_something(escaped):
        return escaped
    number = _NUMBER.match(escaped)
    place = number.end() if number else 0
    return f"{escaped[:place]}\\{escaped[place:]}"


def _begins_something(line: str) -> bool:
    if line[:1].isalpha() or not line:
        return False
    return (
        line_syntax.begins(line) != "text"
        or line_syntax.UNDERLINE.match(line) is not None
        or line_syntax.DELIMITER_ROW.match(line) is not None
    )


def fence(content: list[str], language: str = "") -> str:
    """Lines as they are, in a fence that none of them closes."""
    longest = max((len(run) for line in content for run in re.findall(r"^\s*(`{3,})", line)), default=2)
    mark = "`" * (longest + 1)
    return "\n".join([mark + language, *content, mark])


def escape_places(line: str) -> list[int]:
    """Before which characters `escape` puts a backslash, for lines that are given marks of their own as well."""
    places = [found.start() for found in _MEANINGFUL.finditer(line)]
    if places[:1] != [0] and _begins_something(line):
        number = _NUMBER.match(line)
        places.append(number.end() if number else 0)
    return sorted(set(places))


def escape_inline(text: str, mark: str) -> str:
    """Text that stands somewhere in a line; `mark` is put where a backslash will be."""
    return _MEANINGFUL.sub(rf"{mark}\g<0>", text)
