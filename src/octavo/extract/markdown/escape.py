"""Escapes plain text for Markdown. Only characters with a special meaning at their position are escaped.

Also detects which kind of block a line of Markdown starts. It follows the rules of CommonMark, and GitHub's rules for
tables. Every pattern is matched at the start of a line and takes linear time. To ensure this, possessive quantifiers
(`*+`) are used where one quantifier follows another.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# The name of the matching group is the kind of block that the line starts. `begins` examines "markup" further.
LINE = re.compile(
    r"""
    (?P<blank>[ \t]*+$)
  | (?P<indented>[ ]{4}|[ ]{0,3}\t)
  | [ ]{0,3}(?:
        (?P<heading>\#{1,6}(?=[ \t]|$))
      | (?P<fence>`{3,}(?=[^`\n]*$)|~{3,})
      | (?P<quote>>)
      | (?P<rule>(?:-[ \t]*+){3,}+$|(?:\*[ \t]*+){3,}+$|(?:_[ \t]*+){3,}+$)
      | (?P<list>(?:[-+*]|\d{1,9}[.)])(?=[ \t]|$))
      | (?P<markup><)
      | (?P<text>)
    )""",
    re.MULTILINE | re.VERBOSE,
)

UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$", re.MULTILINE)
CLOSING_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t]*$", re.MULTILINE)

# Quote and list markers that can precede the text of a line.
CONTAINERS = re.compile(r"(?:[ \t]*+(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]|$)))*+[ \t]*+", re.MULTILINE)

# A list can only interrupt a paragraph if its first item has text and, if numbered, starts with 1.
INTERRUPTING_ITEM = re.compile(r" {0,3}(?:[-+*]|1[.)])[ \t]+\S")

_DASHES = r"[ \t]*+:?-++:?[ \t]*+"
DELIMITER_ROW = re.compile(rf" {{0,3}}(?=\S\S|\|)\|?{_DASHES}(?:\|{_DASHES})*+\|?[ \t]*$", re.MULTILINE)
CELL_BORDER = re.compile(r"(?<!\\)\|")

IMAGE = re.compile(r"!\[[^\]\n]{0,1000}\]\([^()\n]{0,2000}\)\s*")


class Markup(NamedTuple):
    """Patterns for the start and the end of one type of HTML block. If `end` is None, an empty line ends the block."""

    start: re.Pattern[str]
    end: re.Pattern[str] | None


_BLOCK_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|frame|frameset|h1|h2|h3|h4|h5|h6|head|header|hr|html|iframe|legend|li|link|"
    "main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|"
    "title|tr|track|ul"
)
_ATTRIBUTE = r"""[ \t]++[A-Za-z_:][\w.:-]*+(?:[ \t]*+=[ \t]*+(?:[^ \t\n"'=<>`]++|'[^'\n]*+'|"[^"\n]*+"))?+"""
_FLAGS = re.IGNORECASE | re.MULTILINE

INTERRUPTING_MARKUP = (
    Markup(
        re.compile(r"<(?:script|pre|style|textarea)(?=[ \t>]|$)", _FLAGS),
        re.compile(r"</(?:script|pre|style|textarea)>", _FLAGS),
    ),
    Markup(re.compile(r"<!--"), re.compile(r"-->")),
    Markup(re.compile(r"<\?"), re.compile(r"\?>")),
    Markup(re.compile(r"<![A-Za-z]"), re.compile(r">")),
    Markup(re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>")),
    Markup(re.compile(rf"</?(?:{_BLOCK_TAGS})(?=[ \t]|/?>|$)", _FLAGS), None),
)
LONE_TAG = Markup(
    re.compile(rf"(?:<[a-z][a-z0-9-]*+(?:{_ATTRIBUTE})*+[ \t]*+/?>|</[a-z][a-z0-9-]*+[ \t]*+>)[ \t]*$", _FLAGS), None
)


def begins(text: str, position: int = 0) -> str:
    """Return the kind of block that the line at `position` starts.

    The kind is "text", "html", "tag" (for a line that is a single HTML tag), or a group name of the pattern `LINE`.
    """
    if text[position : position + 1].isalpha():  # true for most lines, and ten times faster than the pattern
        return "text"
    found = LINE.match(text, position)
    kind = (found.lastgroup if found else None) or "text"
    if kind != "markup":
        return kind
    markup = markup_at(text, position)
    return "text" if not markup else "tag" if markup is LONE_TAG else "html"


def markup_at(text: str, position: int) -> Markup | None:
    """Return the type of HTML block that the first tag of the line starts. Returns None if it starts no HTML block."""
    tag = text.find("<", position)
    return next((markup for markup in (*INTERRUPTING_MARKUP, LONE_TAG) if markup.start.match(text, tag)), None)


def line_end(text: str, position: int) -> int:
    """Return the offset at which the line ends, excluding its newline."""
    end = text.find("\n", position)
    return len(text) if end < 0 else end


def indent_of(line: str) -> int:
    """Return the width of the leading white space. Tab stops are four columns apart."""
    space = line[: len(line) - len(line.lstrip(" \t"))]
    return len(space.expandtabs(4))


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
    return begins(line) != "text" or UNDERLINE.match(line) is not None or DELIMITER_ROW.match(line) is not None


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
    """Escape text in the same way as `escape_inside`, but insert `mark` instead of each backslash."""
    return _SPECIAL.sub(rf"{mark}\g<0>", text)
