"""Converts formulas to MathML. In Markdown, a formula is one line of text such as `(a + b)/2`.

`octavo.extract.office.formulas` writes this notation. A document can contain any text, so parsing never fails: text
that is not in this notation is shown unchanged.
"""

# ruff: noqa: RUF001 - mathematical characters look like others

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from html import escape, unescape

FORMULA = re.compile(r'<math(?P<block> display="block")?>(?P<line>[^<>]{1,12000})</math>')
# A bracket after a space is a group; directly after a name, it is an index.
_BRACKET = re.compile(r"(?:(?<=[\s(])|^)\[")
_OPEN = "\ufdd8"
_TOKEN = re.compile(r'"[^"]*"|\d+(?:[.,]\d+)*|[^\W\d_]+[\u0300-\u036f\u20d0-\u20ff]*|\S')
_CLOSING = {"(": ")", "[": "]", _OPEN: "]", "{": "}"}
_LIMITS = frozenset("∑∏∐⋃⋂⋁⋀") | {"lim", "max", "min", "sup", "inf", "argmax", "argmin"}
_LIMIT_TAGS = ("munder", "mover", "munderover")
_SCRIPT_TAGS = ("msub", "msup", "msubsup")
_MOST_DEPTH = 40
_MOST_TOKENS = 4000


def to_mathml(line: str, *, is_block: bool = False) -> str:
    """Convert a formula to MathML. A formula that is too long or too deeply nested is shown as text."""
    tokens = [found.group() for found in _TOKEN.finditer(_BRACKET.sub(_OPEN, unescape(line)))]
    content = f"<mtext>{escape(unescape(line))}</mtext>"
    if len(tokens) <= _MOST_TOKENS:
        with suppress(RecursionError):
            content = _Parser(tokens).row()
    return f'<math display="block">{content}</math>' if is_block else f"<math>{content}</math>"


@dataclass(slots=True)
class _Parser:
    """Parses the tokens of a formula one after another. `depth` is the nesting depth of the current token."""

    tokens: list[str]
    at: int = 0
    depth: int = 0

    def row(self, *ends: str) -> str:
        """Parse everything up to one of the closing tokens, or to the end."""
        return f"<mrow>{''.join(self._parts(ends))}</mrow>"

    def _parts(self, ends: tuple[str, ...]) -> Iterator[str]:
        while self.at < len(self.tokens) and self.tokens[self.at] not in ends:
            yield self._fraction()

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self, token: str) -> bool:
        is_next = self._peek() == token
        self.at += is_next
        return is_next

    def _fraction(self) -> str:
        start = self.at
        above = self._scripted()
        if self._peek() != "/" or self.at + 1 >= len(self.tokens):
            return above
        is_group = self.tokens[start] == "(" and self.tokens[self.at - 1] == ")"
        self.at += 1
        return f"<mfrac>{_ungrouped(above) if is_group else above}{self._operand(scripts=True)}</mfrac>"

    def _scripted(self) -> str:
        token = self._peek()
        base = self._atom()
        below = self._index() or (self._operand() if self._take("_") else "")
        above = self._operand() if self._take("^") else ""
        below = below or (self._operand() if above and self._take("_") else "")
        if not below and not above:
            return base
        under, over, both = _LIMIT_TAGS if token in _LIMITS else _SCRIPT_TAGS
        tag = both if below and above else under if below else over
        return f"<{tag}>{base}{below}{above}</{tag}>"

    def _index(self) -> str:
        if not self._take("["):
            return ""
        index = self.row("]")
        self._take("]")
        return index

    def _operand(self, *, scripts: bool = False) -> str:
        """Parse an operand of a fraction, script or root.

        Brackets that only group it, as in `(a + b)/2`, are not shown.
        """
        if self._peek() != "(":
            return self._scripted() if scripts else self._atom()
        start = self.at
        inside = self._atom()
        if scripts and self._peek() in {"_", "^", "["}:
            self.at = start
            return self._scripted()
        return _ungrouped(inside)

    def _atom(self) -> str:
        token = self._peek()
        self.at += 1
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise RecursionError
        made = self._read(token)
        self.depth -= 1
        return made

    def _read(self, token: str) -> str:
        if token == "√":  # noqa: S105 - a sign
            return f"<msqrt>{self._operand(scripts=True)}</msqrt>"
        if token in {"root", "matrix", "overline"} and self._peek() == "(":
            self.at += 1
            return getattr(self, f"_{token}")()
        if token in _CLOSING:
            inside = self.row(_CLOSING[token])
            is_closed = self._take(_CLOSING[token])
            return f"<mrow>{_sign(token)}{inside}{_sign(_CLOSING[token]) if is_closed else ''}</mrow>"
        return _leaf(token)

    def _root(self) -> str:
        degree = self.row(",", ")")
        self._take(",")
        base = self.row(")")
        self._take(")")
        return f"<mroot>{base}{degree}</mroot>"

    def _overline(self) -> str:
        base = self.row(")")
        self._take(")")
        return f"<mover>{base}<mo>¯</mo></mover>"

    def _matrix(self) -> str:
        rows: list[list[str]] = [[]]
        while self.at < len(self.tokens):
            rows[-1].append(f"<mtd>{self.row(',', ';', ')')}</mtd>")
            if self._take(";"):
                rows.append([])
            elif not self._take(","):
                self._take(")")
                break
        written = "".join(f"<mtr>{''.join(row)}</mtr>" for row in rows)
        return f"<mtable>{written}</mtable>"


def _leaf(token: str) -> str:
    if token.startswith('"') and len(token) > 1:
        return f"<mtext>{escape(token[1:-1])}</mtext>"
    if token[:1].isdigit():
        return f"<mn>{escape(token)}</mn>"
    return f"<mi>{escape(token)}</mi>" if token[:1].isalpha() else _sign(token) if token else "<mrow></mrow>"


def _sign(token: str) -> str:
    return f"<mo>{escape({'-': '−', _OPEN: '[', '∣': '|'}.get(token, token))}</mo>"


def _ungrouped(group: str) -> str:
    """Remove the brackets that only group an operand, as in `(a + b)/2`."""
    return group.removeprefix("<mrow><mo>(</mo>").removesuffix("<mo>)</mo></mrow>") if group else group
