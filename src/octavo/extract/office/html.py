"""Converts HTML inside other formats (books, emails) to Markdown. Keeps all of the text, not only an article.

html-to-markdown does the conversion, but it silently drops text inside more than a thousand nested elements. So the
words in the result are counted. If many are missing, a simpler conversion without recursion is used instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from octavo.core.texts import ONE_CHARACTER, count_words
from octavo.extract.decode import clean
from octavo.extract.markdown.block_writer import MOST_REPEATED
from octavo.extract.markdown.escape import escape, escape_inline
from octavo.extract.markdown.inline import safe_link
from octavo.extract.office.formulas import from_mathml, to_markup
from octavo.extract.office.xml import (
    BLOCK_TAGS,
    HEADING_TAGS,
    Element,
    attribute,
    body_of,
    etree,
    flat_blocks,
    read_html,
    read_page,
    replace,
    text_before,
    text_of,
)

# Placeholder for a backslash. html-to-markdown would double a real one.
_ESCAPE = "\ufdd2"
_BACKSLASH = "\ufdd3"
_BRACKETS = {"[": "\ufdd4", "]": "\ufdd5"}  # html-to-markdown would cut the text of a link at brackets
# A number between these two characters is a placeholder for a picture or formula until the text is finished.
_MARK_START, _MARK_END = "\ufdd6", "\ufdd7"
_MARK = re.compile("\ufdd6(\\d{1,7})\ufdd7")
_LEAST_WORDS = 0.85
_FEW_WORDS = 5

__all__ = ["Picture", "body_of", "read_html", "read_page", "to_markdown"]

_SPACES = re.compile(r"[ \t\r\n\f\v\x85\xa0\u2028\u2029]+")
# Character references such as "&#2;" become characters that XML does not allow.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_UNDERLINE = re.compile(r"(\s*)(=+|-+)(\s*)")
_EMPTY_LINES = re.compile(r"\n{3,}")
_SPACES_AT_END = re.compile(r"(?<! ) $|(?<=\S) {3,}$", re.MULTILINE)

_NO_TEXT = frozenset({"script", "style", "head", "template", "iframe", "audio", "video", "canvas"})
_SHOWN_INPUTS = frozenset({"text", "number", "email", "tel", "url", "date", "time", "search"})
_POWER = re.compile(r"\s*[-+\u2212]?\d{1,3}\s*")
_LINE_NUMBER = re.compile(r"\d{1,5}")
# Parts of a drawing that describe it for programs.
_NOT_DRAWN = ("script", "style", "metadata")
_DRAWN_LINES = frozenset({"text", "title", "desc", "p", "div", "br"})
_PLACES = re.compile(r"\d[\s,]+[-.\d]")
# Chinese and Japanese: a line break in the source is not a space.
_EASTERN = re.compile(f"[\u3000-\u303f\uff01-\uff65{ONE_CHARACTER}]")
_WRAPPED = re.compile(f"(?<={_EASTERN.pattern})[ \t]*[\r\n]\\s*(?={_EASTERN.pattern})")
_WRAPPED_START = re.compile(f"[ \t]*[\r\n]\\s*{_EASTERN.pattern}")
_MOST_SPAN = 200
_MOST_SPREAD = 100_000
_AS_IT_IS = frozenset({"pre", "code", "kbd", "samp", "tt"})


Picture = Callable[[Element], str | None]


def to_markdown(body: Element, picture: Picture | None = None) -> str:
    """Convert an element to Markdown. Modifies the tree.

    `picture` returns the Markdown of an image. If it returns None, the alternative text of the image is used.
    """
    marks = _simplify(body, picture)
    words = count_words(" ".join(body.itertext()))
    if not words and not marks:
        return ""
    written: str = etree.tostring(body, encoding="unicode", method="html")
    markdown = _tidy(_convert(written))
    if count_words(markdown) < words * _LEAST_WORDS - _FEW_WORDS:
        markdown = _tidy("\n\n".join(_plain_blocks(body)))
    return _MARK.sub(lambda found: marks[int(found[1])] if int(found[1]) < len(marks) else "", markdown)


def _convert(written: str) -> str:
    # Imported late: only the sandbox needs it.
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    options = ConversionOptions(
        autolinks=False,
        bullets="-",
        compact_tables=True,
        expand_abbreviations=False,
        extract_metadata=False,
        highlight_style="none",
        hidden_content="reachable",
        include_blockquote_citations=False,
        preprocessing=PreprocessingOptions(enabled=False),
    )
    return convert(written, options).content or ""


def _tidy(markdown: str) -> str:
    text = clean(markdown).replace(_ESCAPE, "\\").replace(_BACKSLASH, "\\")
    for bracket, stand_in in _BRACKETS.items():
        text = text.replace(stand_in, f"\\{bracket}")
    return _EMPTY_LINES.sub("\n\n", _SPACES_AT_END.sub("", text)).strip("\n")


def _simplify(body: Element, picture: Picture | None) -> list[str]:
    """Remove elements without text, replace pictures and formulas with placeholders, and escape Markdown characters.

    Returns the Markdown for each placeholder.
    """
    marks: list[str] = []
    done: set[Element] = set()
    for element in list(body.iter()):
        name = element.tag
        if element in done:
            continue
        if name in _NO_TEXT and element is not body:
            done.update(element.iter())
            replace(element, "")
        elif name in _REPLACED:
            done.update(element.iter())
            markup = _REPLACED[name](element, picture)
            replace(element, f"{_MARK_START}{len(marks)}{_MARK_END}" if markup else "")
            marks += [markup] if markup else []
        elif name in _SIMPLIFIED:
            _SIMPLIFIED[name](element)
        elif element.get("role") == "heading":
            level = element.get("aria-level") or "2"
            element.tag = f"h{level}" if f"h{level}" in HEADING_TAGS else "h2"
    for table in reversed(list(body.iter("table"))):
        _simplify_table(table)
    _escape_texts(body)
    return marks


def _image(element: Element, picture: Picture | None) -> str:
    markup = picture(element) if picture else None
    alt = " ".join((element.get("alt") or "").split())
    return markup if markup is not None else escape(f"[Image: {alt}]") if alt else ""


def _formula(element: Element, _picture: Picture | None) -> str:
    markup = to_markup(from_mathml(element), is_block=element.get("display") == "block")
    return markup or escape(" ".join((element.get("alttext") or "").split()))


def _drawing(element: Element, picture: Picture | None) -> str:
    """Write the pictures and the text of a vector drawing. If the drawing is a whole page, each text becomes a line."""
    images = [_image(one, picture) for one in element.iter("image")]
    lines = (escape(" ".join(line.split())) for line in "".join(_drawing_texts(element)).split("\n"))
    page = element.getparent()
    is_page = page is not None and page.tag == "body" and len(page) == 1
    return ("\n" if is_page else " ").join(filter(None, [*images, *lines]))


_REPLACED: dict[str, Callable[[Element, Picture | None], str]] = {
    "img": _image,
    "image": _image,
    "math": _formula,
    "svg": _drawing,
}


def _simplify_input(element: Element) -> None:
    """Replace a form field with its value. Check boxes become "[x]" or "[ ]"."""
    kind = (element.get("type") or "text").lower()
    if kind in {"checkbox", "radio"}:
        replace(element, " [x] " if element.get("checked") is not None else " [ ] ")
    else:
        replace(element, f" {element.get('value') or ''} " if kind in _SHOWN_INPUTS else "")


def _simplify_select(element: Element) -> None:
    """Replace a list of options with the selected options.

    If no option is selected, the first one is used, as in a browser.
    """
    options = list(element.iter("option"))
    chosen = [one for one in options if one.get("selected") is not None] or options[:1]
    replace(element, ", ".join(text_of(one) for one in chosen))


def _simplify_power(element: Element) -> None:
    """Write powers with a caret, so that 10⁵ becomes "10^5" and not "105"."""
    if _POWER.fullmatch("".join(element.itertext())) and text_before(element)[-1:].isdigit():
        element.text = "^" + (element.text or "")


def _simplify_span(element: Element) -> None:
    """If the element is a line number at the end of a line, insert a space between it and the word before it."""
    after = element.getnext()
    is_last = not (element.tail or "").strip() and (after is None or after.tag == "br")
    before = text_before(element)[-1:]
    if is_last and before.isalpha() and not _EASTERN.match(before) and _LINE_NUMBER.fullmatch(element.text or ""):
        element.text = f" {element.text}"


def _simplify_ruby(element: Element) -> None:
    """Write the pronunciation of ruby text in parentheses after the characters that it annotates."""
    for inside in list(element.iter("rp", "rt")):
        reading = text_of(inside)
        replace(inside, f"({reading})" if inside.tag == "rt" and reading else "")
    for one in [element, *element.iter("rb", "rtc")]:
        one.tag = "span"


def _simplify_caption(element: Element) -> None:
    """Keep the headings and paragraphs in a caption as separate blocks.

    Otherwise the whole caption would be one line of italics.
    """
    if any(BLOCK_TAGS.fullmatch(one.tag) for one in element.iter() if one is not element):
        element.tag = "div"


def _simplify_object(element: Element) -> None:
    """Show the fallback content of an `object` element, which browsers show if they cannot display the object
    itself.
    """
    element.tag = "div"


def _simplify_table(table: Element) -> None:
    """Repeat the text of a cell in every column and row that it spans, if the text is short.

    A table used only for layout is unwrapped.
    """
    rows = [row for row in table.iter("tr") if _table_of(row) is table]
    if _is_layout(table, rows):
        for element in [table, *rows, *(cell for row in rows for cell in row)]:
            element.tag = "div"
        return
    for item in table.iter("li"):
        is_first = (
            item.getprevious() is None and (parent := item.getparent()) is not None and parent.getprevious() is None
        )
        item.text = (" " if is_first else " - ") + (item.text or "").lstrip()
    budget = _MOST_SPREAD
    reach: dict[int, tuple[int, str]] = {}
    for row in rows:
        column = 0
        for cell in [one for one in row if one.tag in {"td", "th"}]:
            column = _fill(row, cell, column, reach)
            across, down = min(_span(cell, "colspan"), budget), _span(cell, "rowspan")
            text = _MARK.sub("", text_of(cell)) if across > 1 or down > 1 else ""
            text = text if len(text) <= MOST_REPEATED else ""
            budget -= across - 1
            for place in range(column, column + across):
                if down > 1:
                    reach[place] = (down - 1, text)
                if place > column:
                    _insert_cell(row, None, text, after=cell)
            column += across
        _fill(row, None, column, reach)


def _fill(row: Element, cell: Element | None, column: int, reach: dict[int, tuple[int, str]]) -> int:
    """Insert the cells that span down from earlier rows (rowspan), starting at `column` and before `cell`.

    If `cell` is None, they are inserted at the end of the row. Returns the next free column.

    `reach` maps the column of each such cell to the number of remaining rows and the text.
    """
    while column in reach:
        left, text = reach.pop(column)
        _insert_cell(row, cell, text)
        if left > 1:
            reach[column] = (left - 1, text)
        column += 1
    return column


def _insert_cell(row: Any, before: Element | None, text: str, *, after: Element | None = None) -> None:  # noqa: ANN401
    made: Any = etree.Element("td")
    made.text = text
    if after is not None:
        row.insert(row.index(after) + 1, made)
    elif before is not None:
        row.insert(row.index(before), made)
    else:
        row.append(made)


def _span(cell: Element, name: str) -> int:
    """Return the number of columns or rows that a cell spans.

    Removes the attribute, because the spanned cells are written out.
    """
    written = (cell.get(name) or "1").strip()
    if name in cell.attrib:
        del cell.attrib[name]
    return min(max(int(written), 1), _MOST_SPAN) if written.isdecimal() and len(written) < 6 else 1  # noqa: PLR2004


def _table_of(row: Element) -> Element | None:
    parent = row.getparent()
    while parent is not None and parent.tag != "table":
        parent = parent.getparent()
    return parent


def _is_layout(table: Element, rows: Sequence[Element]) -> bool:
    """Whether a table is used only for layout.

    Such a table has a single cell, or it has no header cells and is used to arrange tables, headings and lists.
    """
    if table.get("role") in {"presentation", "none"}:
        return True
    cells = [cell for row in rows for cell in row if cell.tag in {"td", "th"}]
    if len(cells) <= 1:
        return True
    if any(cell.tag == "th" for cell in cells):
        return False
    widest = max(sum(1 for _ in row) for row in rows)
    has_blocks = any(True for cell in cells for _ in cell.iter("table", "h1", "h2", "h3", "ul", "ol", "pre"))
    is_drawn = any(table.get(name) is not None for name in ("cellpadding", "cellspacing", "width", "bgcolor"))
    return has_blocks and (widest == 1 or (is_drawn and any(True for cell in cells for _ in cell.iter("table"))))


def _drawing_texts(drawing: Element) -> Iterator[str]:
    """Yield the texts of a vector drawing, without its style sheet. A text with a position begins a new line."""
    hidden = {inside for one in drawing.iter(*_NOT_DRAWN) for inside in one.iter()}
    line: str | None = None
    for event, element in etree.iterwalk(drawing, events=("start", "end")):
        if event == "start" and element not in hidden:
            yield _separator(element, line)
            line = element.get("y") if element.tag == "tspan" else None
            yield _SPACES.sub(" ", element.text or "")
        elif event == "end" and element is not drawing and element.getparent() not in hidden:
            yield _SPACES.sub(" ", element.tail or "")


def _separator(element: Element, line: str | None) -> str:
    """Return the separator before a text in a drawing: a line break, a space or nothing.

    `line` is the vertical position of the previous text.
    """
    if element.tag in _DRAWN_LINES:
        return "\n"
    if element.tag != "tspan" or not any(element.get(name) for name in ("x", "y", "dy")):
        return ""
    if element.get("y") != line or element.get("dy"):
        return "\n"
    # A place for each letter means that the text was cut where its font changes.
    return "" if _PLACES.search(element.get("x") or "") else " "


def _simplify_link(element: Element) -> None:
    """Keep web, FTP and mail links. Other links become plain text.

    A reference to a note is shown in square brackets.
    """
    link = safe_link(element.get("href"))
    if "title" in element.attrib:
        del element.attrib["title"]
    if link:
        element.set("href", link)
    else:
        element.tag = "span"
    if attribute(element, "epub:type") == "noteref" or element.get("role") == "doc-noteref":
        shown = " ".join("".join(element.itertext()).split())
        if shown.isalnum():
            for inside in list(element):
                element.remove(inside)
            element.text = f"[{shown}]"


_SIMPLIFIED: dict[str, Callable[[Element], None]] = {
    "a": _simplify_link,
    "figcaption": _simplify_caption,
    "input": _simplify_input,
    "object": _simplify_object,
    "ruby": _simplify_ruby,
    "select": _simplify_select,
    "span": _simplify_span,
    "sup": _simplify_power,
}


def _escape_texts(body: Element) -> None:
    codes = links = 0
    before = ""
    for event, element in etree.iterwalk(body, events=("start", "end")):
        step = 1 if event == "start" else -1
        codes += step * (element.tag in _AS_IT_IS)
        links += step * (element.tag == "a")
        text = element.text if event == "start" else element.tail if element is not body else None
        if not text:
            continue
        if not codes:
            text = _escaped(text, before, in_link=links > 0)
            setattr(element, "text" if event == "start" else "tail", text)
        before = text


def _escaped(text: str, before: str, *, in_link: bool) -> str:
    """Escape the Markdown characters in a text.

    `before` is the preceding text, which matters because both together could look like a link.
    """
    text = _WRAPPED.sub("", _CONTROL.sub("", text))
    if _EASTERN.match(before[-1:]) and _WRAPPED_START.match(text):
        text = text.lstrip()
    text = escape_inline(_SPACES.sub(" ", text), _ESCAPE).replace("\\", _BACKSLASH)
    if before.endswith("]") and text.startswith(("(", ":")):
        text = _ESCAPE + text
    if in_link:
        text = text.replace(f"{_ESCAPE}]", "]").translate(str.maketrans(_BRACKETS))
    return _UNDERLINE.sub(rf"\1{_ESCAPE}\2\3", text) if _UNDERLINE.fullmatch(text) else text


def _plain_blocks(body: Element) -> Iterator[str]:
    """Write the text blocks in document order, ignoring nesting."""
    for level, content in flat_blocks(body):
        text = " ".join(content.replace(_ESCAPE, "").replace(_BACKSLASH, "\\").split())
        for bracket, stand_in in _BRACKETS.items():
            text = text.replace(stand_in, bracket)
        if text:
            yield f"{'#' * level} {escape(text)}" if level else escape(text)
