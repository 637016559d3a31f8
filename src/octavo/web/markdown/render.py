"""Renders Markdown to blocks of safe HTML, each with its range of characters in the Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock, reference
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import OptionsDict

from octavo.web.markdown.formulas import FORMULA
from octavo.web.markdown.safety import (
    Picture,
    clean,
    describe_picture,
    figure_number,
    mark_figure,
    mark_formula,
    show_figures,
    show_formulas,
    simplify,
)

References = Mapping[str, Any]
Environment = MutableMapping[str, Any]

# The parser drops deeper nesting, so a block with deeper nesting is shown as source.
MOST_NESTING = 60
# Parsing time is quadratic in the number of some marks; no real paragraph has this many.
MOST_MARKS = 3000
_MARKS = "[<*_~`!\\"
_LINE_BREAK = re.compile(r"\r\n?|\n")
_MARK = re.compile(r"\[\^([^\]\s^]{1,40})\]")
_ALIGNED = {"text-align:right": "right", "text-align:center": "centre"}


@dataclass(frozen=True, slots=True)
class Block:
    """A rendered block.

    `start` and `end` are positions in the Markdown of the whole document. Only headings have a level.
    """

    start: int
    end: int
    html: str
    level: int | None = None


def render_window(
    text: str, start: int = 0, references: References | None = None, figures: Mapping[int, Picture] | None = None
) -> list[Block]:
    """Render Markdown to its top-level blocks, in order.

    `start` is the position of the text in its document. `figures` maps figure numbers to the pictures to show. No other
    pictures are loaded.
    """
    environment: Environment = {"references": dict(references or {}), "figures": dict(figures or {})}
    parser = make_parser()
    tokens = parser.parse(text, environment)
    lines = _line_starts(text)
    return [_block(parser, group, text, start, lines, environment) for group in _outermost(tokens)]


def render_plain(text: str, start: int = 0) -> list[Block]:
    """Return the unrendered Markdown source as one block. Returns an empty list if the text is blank."""
    return [Block(start, start + len(text.rstrip()), _plain(text))] if text.strip() else []


def read_references(texts: Sequence[str]) -> References:
    """Read the link definitions in these texts. If a name is defined twice, the first definition is used."""
    environment: Environment = {"references": {}}
    parser = make_parser()
    for text in texts:
        parser.parse(text, environment)
    return environment["references"]


# Parsing -----------------------------------------------------------------------------------------------------------


def make_parser() -> MarkdownIt:
    """Create a parser for CommonMark with tables, strikethrough, footnote references and formulas."""
    options: Any = {"html": True, "inline_definitions": True, "maxNesting": MOST_NESTING}
    parser = MarkdownIt("commonmark", options).enable(["table", "strikethrough"])
    parser.core.ruler.at("inline", _read_inline)
    parser.block.ruler.at("reference", _define)
    parser.inline.ruler.before("link", "mark", _read_mark)
    parser.inline.ruler.before("html_inline", "formula", _read_formula)
    for rule in (image, html_inline, html_block, table_open, table_close, definition, mark, formula):
        parser.add_render_rule(rule.__name__, rule)
    return parser


def _read_inline(state: StateCore) -> None:
    """Parse inline Markdown.

    Blocks with too many special characters stay plain text, because parsing them takes too long.
    """
    for token in state.tokens:
        if token.type != "inline":
            continue
        if sum(map(token.content.count, _MARKS)) > MOST_MARKS:
            token.children = [Token("text", "", 0, content=token.content)]
        else:
            token.children = token.children or []
            state.md.inline.parse(token.content, state.md, state.env, token.children)


def _define(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - called by the parser
    """Parse a link definition such as `[name]: URL`. Footnotes look similar and are skipped."""
    return not state.src.startswith("[^", state.bMarks[start] + state.tShift[start]) and reference(
        state, start, end, silent
    )


def _read_mark(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - called by the parser
    found = _MARK.match(state.src, state.pos, state.posMax)
    if not found:
        return False
    if not silent:
        state.push("mark", "sup", 0).content = found[1]
    state.pos = found.end()
    return True


def _read_formula(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - called by the parser
    found = FORMULA.match(state.src, state.pos, state.posMax) if state.src.startswith("<math", state.pos) else None
    if not found:
        return False
    if not silent:
        token = state.push("formula", "math", 0)
        token.content = found["line"]
        token.meta["is_block"] = bool(found["block"])
    state.pos = found.end()
    return True


# Rendering ---------------------------------------------------------------------------------------------------------
# Rules are named after the token that they render.


def image(
    renderer: RendererHTML, tokens: Sequence[Token], at: int, options: OptionsDict, environment: Environment
) -> str:
    token = tokens[at]
    words = renderer.renderInlineAsText(token.children or [], options, environment)
    number = figure_number(str(token.attrGet("src") or ""))
    if number in environment.get("figures", {}):
        return mark_figure(words, number, linked=token.meta.get("linked", False))
    return describe_picture(words, str(token.attrGet("src") or ""), linked=token.meta.get("linked", False))


def html_inline(_renderer: RendererHTML, tokens: Sequence[Token], at: int, *_rest: object) -> str:
    return simplify(tokens[at].content)


def html_block(_renderer: RendererHTML, tokens: Sequence[Token], at: int, *_rest: object) -> str:
    return simplify(tokens[at].content)


def table_open(*_given: object) -> str:
    return '<div class="wide"><table>'


def table_close(*_given: object) -> str:
    return "</table></div>"


def definition(*_given: object) -> str:
    return ""


def mark(_renderer: RendererHTML, tokens: Sequence[Token], at: int, *_rest: object) -> str:
    return f'<sup class="mark">{escape(tokens[at].content)}</sup>'


def formula(_renderer: RendererHTML, tokens: Sequence[Token], at: int, *_rest: object) -> str:
    token = tokens[at]
    return mark_formula(token.content.replace("\\|", "|"), is_block=token.meta["is_block"])


def _block(
    parser: MarkdownIt, group: list[Token], text: str, offset: int, lines: list[int], environment: Environment
) -> Block:
    first, behind = group[0].map or (0, 0)
    start, end = lines[first], lines[min(behind, len(lines) - 1)]
    written = text[start:end].rstrip()
    level = int(group[0].tag[1:]) if group[0].type == "heading_open" else None
    if max(token.level for token in group) >= MOST_NESTING - 1:
        html = _plain(written)
    else:
        for token in group:
            _prepare(token)
        made = clean(parser.renderer.render(group, parser.options, environment)).rstrip("\n")
        html = show_formulas(show_figures(made, environment.get("figures", {})))
    return Block(offset + start, offset + start + len(written), html, level)


def _prepare(token: Token) -> None:
    """Adjust a token for the page.

    Headings start at `h2`, because the page has its own `h1`. The alignment of a table cell becomes a CSS class.
    Pictures inside a link are marked as linked.
    """
    if token.type in {"heading_open", "heading_close"}:
        token.tag = f"h{min(int(token.tag[1:]) + 1, 6)}"
    if aligned := _ALIGNED.get(str(token.attrs.pop("style", None))):
        token.attrSet("class", aligned)
    depth = 0
    for child in token.children or ():
        depth += child.nesting if child.tag == "a" else 0
        if child.type == "image":
            child.meta["linked"] = depth > 0


def _plain(text: str) -> str:
    return clean(f'<div class="plain">{escape(text)}</div>')


def _outermost(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    group: list[Token] = []
    for token in tokens:
        group.append(token)
        if token.level == 0 and token.nesting <= 0:
            yield group
            group = []


def _line_starts(text: str) -> list[int]:
    """Return the start position of each line, followed by the end position of the text.

    Uses the same line breaks as the Markdown parser.
    """
    starts = [0, *(found.end() for found in _LINE_BREAK.finditer(text))]
    return [*starts, len(text)] if starts[-1] < len(text) or not text else starts
