"""Escapes plain text for Markdown. Only characters with a special meaning at their position are escaped."""

from __future__ import annotations

import re

from octavo.extract.markdown import line_syntax

_SPECIAL = re.compile(
    r"""
    \\(?=[!-/:-@\[-`{-~]|$)                # would escape, or break the line
  | `
  | \*(?=\S) | (?<=\S)\*                   # emphasis, unless between spaces
  | (?<![^\W_])_(?=\S) | (?<=\S)_(?![^\W_])  # emphasis, unless inside a word
  | \](?=[(:])                             # a link, or a link reference definition
  | <(?=[A-Za-z/!?])                       # a tag
  | &(?=\#?[A-Za-z0-9]{1,32};)             # an entity
  | ~(?=~) | (?<=~)~                       # struck out
    """,
    re.VERBOSE,
)
_NUMBER = re.compile(r"\d{1,9}(?=[.)])")


def escape(line: str) -> str:
    """Escape one line of text, so that it can be used anywhere in a paragraph or list item."""
    return escape_start(escape_inside(line.strip()))


def escape_inside(text: str) -> str:
    """Escape text that does not start a line, such as the text of a heading or a table cell."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def escape_start(escaped: str) -> str:
    """Escape the start of a line, so that it is not read as a heading, list item or other block.

    The rest of the line must already be escaped.
    """
    if not _starts_block(escaped):
        return escaped
    number = _NUMBER.match(escaped)
    place = number.end() if number else 0
    return f"{escaped[:place]}\\{escaped[place:]}"


def _starts_block(line: str) -> bool:
    if line[:1].isalpha() or not line:
        return False
    return (
        line_syntax.begins(line) != "text"
        or line_syntax.UNDERLINE.match(line) is not None
        or line_syntax.DELIMITER_ROW.match(line) is not None
    )


def fence(content: list[str], language: str = "") -> str:
    """Write lines as a fenced code block. The fence is longer than any fence in the lines."""
    longest = max((len(run) for line in content for run in re.findall(r"^\s*(`{3,})", line)), default=2)
    mark = "`" * (longest + 1)
    return "\n".join([mark + language, *content, mark])


def escape_places(line: str) -> list[int]:
    """Return the positions at which `escape` would insert a backslash, for callers that also insert formatting."""
    places = [found.start() for found in _SPECIAL.finditer(line)]
    if places[:1] != [0] and _starts_block(line):
        number = _NUMBER.match(line)
        places.append(number.end() if number else 0)
    return sorted(set(places))


def escape_inline(text: str, mark: str) -> str:
    """Escape text like `escape_inside`, but insert `mark` instead of each backslash."""
    return _SPECIAL.sub(rf"{mark}\g<0>", text)
