"""Reads LaTeX documents: text, sections, lists, tables and code. Formulas are kept as LaTeX.

Macros that the file defines are expanded, because authors often define names and terms as macros.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from octavo.extract.decode import clean, decode
from octavo.extract.detect import Hints, Processor
from octavo.extract.extracted import Extracted, Metadata, Quality, SourceType
from octavo.extract.markdown.block_writer import (
    MOST_REPEATED,
    DocumentBlock,
    Heading,
    Item,
    Paragraph,
    Quote,
    Table,
    write_blocks,
)
from octavo.extract.markdown.escape import fence
from octavo.extract.markdown.inline import TextRun, inline, safe_link
from octavo.extract.office.assemble import clean_date, clean_line, to_extracted
from octavo.extract.zips import reject_deep_nesting

_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%[^\n]*(?:\n[ \t]*)?")
_VERBATIM = ("verbatim", "Verbatim", "lstlisting", "minted", "alltt", "comment")
_VERBATIM_BEGIN = re.compile(rf"\\begin\{{((?:{'|'.join(_VERBATIM)})\*?)\}}")
_KEPT = "\ufdd6"  # placeholder for a code block until the surrounding text has been read
_TOKEN = re.compile(
    r"\\(?P<command>[a-zA-Z@]+\*?|.)|(?P<math>\$\$?)|(?P<paragraph>\n[ \t]*\n\s*)|(?P<brace>[{}])"
    rf"|(?P<kept>{_KEPT}\d+{_KEPT})|(?P<tie>~)|(?P<text>[^\\${{}}~\n{_KEPT}]+|\n)",
    re.DOTALL,
)
_MISSING = re.compile(r"\\(?:input|include|subfile|import)\b")
_SECTIONS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph")
_MATH = frozenset({"equation", "align", "gather", "multline", "eqnarray", "displaymath", "math", "flalign", "alignat"})
_TABLES = frozenset({"tabular", "tabularx", "longtable", "tabulary", "array"})
_LISTS = frozenset({"itemize", "enumerate", "description", "thebibliography"})
_QUOTES = frozenset({"quote", "quotation", "verse"})
_STYLES = {
    "textbf": "bold",
    "textit": "italic",
    "emph": "italic",
    "textsl": "italic",
    "texttt": "code",
    "sout": "struck",
}
_REFERENCES = frozenset({"cite", "citep", "citet", "citeauthor", "parencite", "autocite", "textcite", "ref", "eqref"})
# Commands whose first argument is not text. The optional arguments of all commands are dropped.
_HIDDEN = frozenset(
    {"label", "usepackage", "documentclass", "bibliography", "bibliographystyle", "includegraphics", "vspace", "hspace",
     "pagestyle", "thispagestyle", "setlength", "addtolength", "setcounter", "input", "include", "hypersetup", "color",
     "title", "author", "date", "newcommand", "renewcommand", "def", "newtheorem", "pagenumbering", "graphicspath",
     "definecolor", "addcontentsline", "centering", "index", "geometry", "lstset", "setcitestyle", "fontsize"}
)  # fmt: skip
_TWO_HIDDEN = frozenset(
    {"setlength", "addtolength", "setcounter", "newcommand", "renewcommand", "newtheorem", "fontsize"}
)
# Commands and environments whose first arguments are not text; the number of these arguments.
_ARGUMENTS_BEFORE_TEXT = {
    "parbox": 1, "colorbox": 1, "textcolor": 1, "fcolorbox": 2, "hypertarget": 1, "hyperlink": 1, "raisebox": 1,
    "rotatebox": 1, "scalebox": 1, "resizebox": 2, "foreignlanguage": 1, "pdfbookmark": 2, "minipage": 1,
    "multicols": 1, "adjustbox": 1, "wrapfigure": 2, "phantom": 1, "hphantom": 1, "vphantom": 1, "selectlanguage": 1,
    "setstretch": 1, "newenvironment": 3, "renewenvironment": 3, "DeclareMathOperator": 2, "captionsetup": 1,
    "enlargethispage": 1,
}  # fmt: skip
# Commands for quantities, with the number of their arguments: the last one is the unit.
_QUANTITIES = {"SI": 2, "qty": 2, "si": 1, "unit": 1}
# Commands with a second argument for another purpose than reading.
_FIRST_ARGUMENT = frozenset({"texorpdfstring"})
_DRAWINGS = frozenset({"tikzpicture", "pspicture", "picture", "axis", "tikzcd", "forest"})
_STATEMENTS = frozenset(
    {"theorem", "lemma", "proposition", "corollary", "definition", "remark", "example", "proof", "claim", "conjecture"}
)
_IN_FORMULA = re.compile(r"\\label\s*\{[^{}]{0,200}\}\s*|\\(?:nonumber|notag)\b\s*")
_MACRO = re.compile(
    r"\\(?:(?:re)?newcommand|providecommand|DeclareRobustCommand)\*?\s*\{?\s*\\(?P<name>[a-zA-Z@]+)\s*\}?"
    r"\s*(?:\[(?P<count>\d)\])?\s*(?:\[(?P<default>[^\]\n]{0,200})\])?\s*(?=\{)"
    r"|\\[gex]?def\s*\\(?P<defined>[a-zA-Z@]+)(?P<parameters>(?:#\d)*)\s*(?=\{)"
)
_MOST_MACROS, _LONGEST_MACRO, _MOST_ROUNDS = 1000, 2000, 8
_SYMBOLS = {
    "ldots": "…", "dots": "…", "textendash": "\u2013", "textemdash": "\u2014", "ss": "ß", "ae": "æ", "AE": "Æ",
    "o": "ø",
    "O": "Ø", "aa": "å", "AA": "Å", "l": "ł", "L": "Ł", "oe": "œ", "OE": "Œ", "i": "\u0131",
    "LaTeX": "LaTeX", "TeX": "TeX",
    "copyright": "©", "textregistered": "®", "texttrademark": "™", "pounds": "£", "euro": "€", "S": "§", "P": "¶",
    "textbackslash": "\\", "textasciitilde": "~", "textbar": "|", "textless": "<", "textgreater": ">", "quad": " ",
    "qquad": " ", "newline": "\n", "linebreak": "\n", "textquoteright": "\u2019", "slash": "/", "textdegree": "°",
}  # fmt: skip
_ACCENTS = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
    "c": "\u0327", "v": "\u030c", "u": "\u0306", "H": "\u030b", "k": "\u0328", "r": "\u030a",
}  # fmt: skip
_RULES = re.compile(
    r"\\(?:[hv]line|(?:top|mid|bottom)rule|(?:cline|cmidrule(?:\([lr]+\))?)\{[^}]*\}|end(?:first)?(?:head|foot))"
)
_SPAN = re.compile(
    r"\s*\\multi(column|row)\s*(?:\[[^\]]*\])?\s*\{\s*(\d{1,3})\s*\}\s*(?:\[[^\]]*\])?"
    r"\s*(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|\*)\s*(?=\{)"
)
_MOST_SPAN = 100
_KNOWN = frozenset(_STYLES) | _REFERENCES | _HIDDEN | frozenset(_SECTIONS) | frozenset(_SYMBOLS) | frozenset(_ACCENTS)
_DASHES = (("---", "\u2014"), ("--", "\u2013"), ("``", "\u201c"), ("''", "\u201d"))


def extract(path: Path, _hints: Hints) -> Extracted:
    source = clean(decode(path.read_bytes())).replace("\f", "\n").replace(_KEPT, "")
    text, kept = _without_code(source)
    text = _expand(*_macros(_COMMENT.sub(r"\1", text)))
    with reject_deep_nesting():
        metadata = _metadata(text)
        blocks = _blocks(_body(text), kept, metadata)
    quality = Quality.PARTIAL if _MISSING.search(text) else Quality.FULL
    if quality is Quality.PARTIAL:
        reason = "The text of included files is missing."
        metadata = replace(metadata, extra={"reason": reason})
    return to_extracted(SourceType.LATEX, write_blocks(blocks), metadata, quality=quality)


def _without_code(source: str) -> tuple[str, list[str]]:
    """Replace code blocks with placeholders, so that they are not parsed.

    Returns the text, and the code blocks in order.
    """
    parts: list[str] = []
    kept: list[str] = []
    place = 0
    unclosed: set[str] = set()
    for found in _VERBATIM_BEGIN.finditer(source):
        name = found[1]
        end = source.find(f"\\end{{{name}}}", found.end()) if name not in unclosed else -1
        if end < 0:
            unclosed.add(name)
        elif found.start() >= place:
            parts += (source[place : found.start()], f"\n\n{_KEPT}{len(kept)}{_KEPT}\n\n")
            kept.append(_code(name.rstrip("*"), source[found.end() : end]))
            place = end + len(name) + len("\\end{}")
    return "".join([*parts, source[place:]]), kept


def _code(name: str, content: str) -> str:
    if name == "comment":
        return ""
    option = re.match(r"\s*\[([^\]\n]*)\]", content)
    content = content[option.end() :] if option else content
    language = re.search(r"language=\{?(\w+)", option[1]) if option else None
    if name == "minted":
        language = re.match(r"\s*\{(\w+)\}", content)
        content = content[language.end() :] if language else content
    return fence(content.strip("\n").split("\n"), language[1].lower() if language else "")


@dataclass(frozen=True, slots=True)
class _Macro:
    """A LaTeX macro. `count` is the number of its arguments. If `default` is set, the first argument is optional."""

    body: str
    count: int = 0
    default: str | None = None

    def use(self, text: str, place: int) -> tuple[str, int]:
        """Read the macro's arguments at `place` in the text, and insert them into its body.

        Returns the resulting body and the position after the arguments.
        """
        values: list[str] = []
        if self.default is not None:
            given = _OPTION.match(text, place)
            values.append(given[1] if given else self.default)
            place = given.end() if given else place
        while len(values) < self.count:
            space = _SPACE.match(text, place)
            place = space.end() if space else place
            if text[place : place + 1] == "{":
                value, place = _short(text, place)
            else:
                value, place = text[place : place + 1], place + 1
            values.append(value)
        return _PARAMETER.sub(lambda found: "".join(values[int(found[1]) - 1 : int(found[1])]), self.body), place


_OPTION = re.compile(r"\s{0,9}\[([^\]\n]{0,500})\]")
_SPACE = re.compile(r"\s{0,9}")
_PARAMETER = re.compile(r"#([1-9])")


def _short(text: str, start: int) -> tuple[str, int]:
    """Return the text in braces, like `_balanced`, but give up after a limited number of characters."""
    content, end = _balanced(text[start : start + _LONGEST_MACRO], 0)
    return content, start + end


def _macros(text: str) -> tuple[str, dict[str, _Macro]]:
    """Remove the macro definitions from the text. Returns the remaining text and the defined macros."""
    macros: dict[str, _Macro] = {}
    parts: list[str] = []
    place = 0
    for found in islice(_MACRO.finditer(text), _MOST_MACROS):
        if found.start() < place:
            continue
        body, end = _short(text, found.end())
        name = found["name"] or found["defined"]
        count = int(found["count"] or 0) or len(found["parameters"] or "") // 2
        if f"\\{name}" not in body and name not in _KNOWN:
            macros[name] = _Macro(body, count, found["default"])
        parts.append(text[place : found.start()])
        place = end
    return "".join([*parts, text[place:]]), macros


def _expand(text: str, macros: dict[str, _Macro]) -> str:
    """Replace the names of macros with their definitions. The length of the result is limited."""
    if not macros:
        return text
    names = "|".join(sorted(macros, key=len, reverse=True))
    pattern = re.compile(rf"\\({names})(?![a-zA-Z@])")
    most = 3 * len(text) + 100_000
    for _ in range(_MOST_ROUNDS):
        parts: list[str] = []
        place = length = 0
        for found in pattern.finditer(text):
            if found.start() >= place and length < most:
                body, end = macros[found[1]].use(text, found.end())
                parts += (text[place : found.start()], body)
                place, length = end, length + len(body)
        if not parts:
            break
        text = "".join([*parts, text[place:]])
    return text


def _body(text: str) -> str:
    start = text.find("\\begin{document}")
    end = text.rfind("\\end{document}")
    return text[start + len("\\begin{document}") if start >= 0 else 0 : end if end > start else len(text)]


def _metadata(text: str) -> Metadata:
    found = {name: _argument_of(text, name) for name in ("title", "author", "date")}
    author = re.sub(r"\s*\\(?:and|AND)\b\s*", ", ", re.sub(r"\\\\|\n", " ", found["author"]))
    return Metadata(
        title=clean_line(_plain(found["title"])),
        author=clean_line(_plain(author)),
        date=clean_date(_plain(found["date"])),
    )


def _argument_of(text: str, name: str) -> str:
    found = re.search(rf"\\{name}\s*(?:\[[^\]]*\])?\s*(?=\{{)", text)
    return _balanced(text, found.end())[0] if found else ""


def _plain(text: str) -> str:
    return "".join(run.text for run in _LatexReader(text).runs(TextRun(""))).replace("\n", " ") if text else ""


def _balanced(text: str, start: int) -> tuple[str, int]:
    """Return the text in the braces that open at `start`, and the position after the closing brace."""
    depth = 0
    for found in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, start):
        depth += {"{": 1, "}": -1}.get(found.group(), 0)
        if not depth and found.group() == "}":
            return text[start + 1 : found.start()], found.end()
    return text[start + 1 :], len(text)


def _blocks(body: str, kept: Sequence[str], about: Metadata) -> list[DocumentBlock]:
    used = [name for name in _SECTIONS if re.search(rf"\\{name}\b", body)]
    first = _SECTIONS.index(used[0]) if used else 0
    reader = _LatexReader(body, kept, first=first - bool(about.title))
    if about.title:
        reader.blocks.append(Heading(1, inline([TextRun(about.title)], one_line=True)))
        reader.blocks.append(Paragraph(inline([TextRun(about.author or "")], one_line=True)))
    reader.read()
    return [one for one in reader.blocks if not isinstance(one, Paragraph) or one.text.strip()]


@dataclass(slots=True)
class _LatexReader:
    """Reads LaTeX from left to right. `pending` is the unfinished paragraph."""

    text: str
    kept: Sequence[str] = ()
    first: int = 0
    place: int = 0
    blocks: list[DocumentBlock] = field(default_factory=list[DocumentBlock])
    pending: list[TextRun] = field(default_factory=list[TextRun])
    lists: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    label: str | None = None
    quotes: int = 0

    def read(self) -> None:
        self.pending.extend(self.runs(TextRun("")))
        self.finish()

    def finish(self) -> None:
        """End the current paragraph and append it to `blocks`."""
        text = inline(self.pending)
        self.pending.clear()
        if not text.strip():
            return
        if self.lists and self.label is not None:
            self.blocks.append(Item(len(self.lists) - 1, self.label, text.replace("  \n", " ")))
            self.label = None
        else:
            self.blocks.append(Quote(text) if self.quotes else Paragraph(text))

    def runs(self, style: TextRun) -> Iterator[TextRun]:
        """Yield the rest of the LaTeX text, in pieces with uniform formatting.

        Blocks such as headings and tables are appended to `blocks` instead.
        """
        while self.place < len(self.text):
            found = _TOKEN.match(self.text, self.place)
            if found is None:
                self.place += 1
                continue
            self.place = found.end()
            match found.lastgroup:
                case "text":
                    yield replace(style, text=_typographic(found.group()))
                case "tie":
                    yield replace(style, text=" ")
                case "math":
                    yield TextRun(self._math(found.group()), is_raw=True)
                case "paragraph" | "kept":
                    yield from self._break(found.group())
                case "command":
                    yield from self._command(found["command"], style)
                case _:
                    pass  # a brace

    def _break(self, token: str) -> Iterator[TextRun]:
        self.finish()
        if token.startswith(_KEPT):
            number = int(token.strip(_KEPT))
            self.blocks += [Paragraph(self.kept[number])] if number < len(self.kept) else []
        yield from ()

    def _math(self, mark: str) -> str:
        end = self.text.find(mark, self.place)
        end = end if end >= 0 else len(self.text)
        formula = " ".join(_IN_FORMULA.sub("", self.text[self.place : end]).split())
        self.place = end + len(mark)
        return f"{mark}{formula}{mark}" if formula else ""

    def argument(self) -> str:
        """Read the next argument in braces or, without braces, the next character.

        Optional arguments before it are skipped.
        """
        self._skip_options()
        if self.text[self.place : self.place + 1] == "{":
            content, self.place = _balanced(self.text, self.place)
            return content
        self.place += 1
        return self.text[self.place - 1 : self.place]

    def _skip_options(self) -> str:
        found = re.compile(r"\s*((?:\[[^\]\n]{0,500}\])*)\s*").match(self.text, self.place)
        if found and (found[1] or self.text[found.end() : found.end() + 1] == "{"):
            self.place = found.end()
        return found[1][1:-1] if found and found[1] else ""

    def _inner(self, style: TextRun, text: str | None = None) -> Iterator[TextRun]:
        inner = _LatexReader(self.argument() if text is None else text, self.kept)
        yield from inner.runs(style)

    def _command(self, name: str, style: TextRun) -> Iterator[TextRun]:
        bare = name.rstrip("*")
        if bare in _STYLES:
            changed = {
                "bold": replace(style, bold=True),
                "italic": replace(style, italic=True),
                "code": replace(style, code=True),
            }
            yield from self._inner(changed.get(_STYLES[bare], replace(style, struck=True)))
        elif bare in _ACCENTS and (not bare.isalpha() or self.text[self.place : self.place + 1] in {"{", " "}):
            letter = _plain(self.argument().strip()) or " "
            letter = {"\u0131": "i"}.get(letter[0], letter[0]) + letter[1:]
            yield replace(style, text=unicodedata.normalize("NFC", letter[0] + _ACCENTS[bare] + letter[1:]))
        elif bare in _SYMBOLS:
            yield replace(style, text=_SYMBOLS[bare])
        elif bare in _SECTIONS:
            self._section(bare)
        elif bare in {"begin", "end"}:
            yield from self._environment(self.argument(), is_start=bare == "begin")
        elif not bare.isalpha():
            yield from self._sign(name, style)
        else:
            yield from self._other(bare, style)

    def _sign(self, name: str, style: TextRun) -> Iterator[TextRun]:
        if name in {"[", "("}:
            end = self.text.find({"[": "\\]", "(": "\\)"}[name], self.place)
            end = end if end >= 0 else len(self.text)
            mark = "$$" if name == "[" else "$"
            yield TextRun(f"{mark}{' '.join(self.text[self.place : end].split())}{mark}", is_raw=True)
            self.place = end + 2
        elif name == "\\":
            self._skip_options()
            yield replace(style, text="\n")
        elif name in "%&_#${} ":
            yield replace(style, text=name)

    def _other(self, name: str, style: TextRun) -> Iterator[TextRun]:
        if name in _HIDDEN:
            self._skip_options()
            for _ in range(1 + (name in _TWO_HIDDEN)):
                if self.text[self.place : self.place + 1] == "{":
                    self.argument()
        elif name in {"item", "bibitem"}:
            self._item(name)
        elif name in {"href", "url"}:
            target = self.argument()
            link = safe_link(target)
            yield from (
                self._inner(replace(style, link=link)) if name == "href" else [replace(style, text=target, link=link)]
            )
        elif name in _REFERENCES:
            yield replace(style, text=f"[{self.argument()}]")
        elif name in {"footnote", "thanks"}:
            yield replace(style, text=" (")
            yield from self._inner(style)
            yield replace(style, text=")")
        elif name == "caption":
            self.finish()
            self.pending.extend(self._inner(style))
            self.finish()
        else:
            yield from self._arguments(name, style)

    def _arguments(self, name: str, style: TextRun) -> Iterator[TextRun]:
        """Read the arguments of a command. The arguments of an unknown command are read as text."""
        if name in _ARGUMENTS_BEFORE_TEXT:
            self._skip_arguments(_ARGUMENTS_BEFORE_TEXT[name])
        elif name in _FIRST_ARGUMENT:
            yield from self._inner(style)
            self.argument()
        elif name in _QUANTITIES:
            parts = [self.argument() for _ in range(_QUANTITIES[name])]
            words = re.sub(r"\\([a-zA-Z]+)", r" \1 ", parts[-1])
            yield replace(style, text=" ".join([*parts[:-1], *words.split()]))
        elif self.text[self.place : self.place + 1] in {"{", "["}:
            self._skip_options()

    def _skip_arguments(self, count: int) -> None:
        for _ in range(count):
            self._skip_options()
            if self.text[self.place : self.place + 1] == "{":
                self.argument()
        self._skip_options()

    def _section(self, name: str) -> None:
        self.finish()
        title = inline(self._inner(TextRun("")), is_plain=True, one_line=True)
        self.blocks.append(Heading(max(1, _SECTIONS.index(name) - self.first + 1), title))

    def _item(self, name: str) -> None:
        self.finish()
        given = self._skip_options()
        if not self.lists:
            return
        kind, number = self.lists[-1]
        self.lists[-1] = (kind, number + 1)
        self.label = f"{number + 1}." if kind == "enumerate" else ""
        if name == "bibitem":
            self.pending.append(TextRun(f"[{self.argument()}] "))
        elif given:
            self.pending += [*_LatexReader(given, self.kept).runs(TextRun("", bold=True)), TextRun(" ")]

    def _environment(self, name: str, *, is_start: bool) -> Iterator[TextRun]:
        bare = name.rstrip("*")
        if bare in _MATH and is_start:
            content = _IN_FORMULA.sub("", self._until(name))
            self.finish()
            self.blocks.append(Paragraph(f"$$\n{content.strip()}\n$$" if content.strip() else ""))
            return
        self.finish()
        if bare in _TABLES and is_start:
            self._table(bare, self._until(name))
        elif bare in _LISTS:
            self.lists = [*self.lists, (bare, 0)] if is_start else self.lists[:-1]
            self.label = None
            if bare == "thebibliography" and is_start:
                self.argument()
                self.blocks.append(Heading(max(1, 3 - self.first), "References"))
        elif bare in _QUOTES:
            self.quotes += 1 if is_start else -min(1, self.quotes)
        elif bare == "abstract" and is_start:
            self.blocks.append(Heading(max(1, 3 - self.first), "Abstract"))
        elif bare in _DRAWINGS and is_start:
            self._until(name)
            self.blocks.append(Paragraph("*[Drawing]*"))
        elif bare.lower() in _STATEMENTS and is_start:
            about = self._skip_options()
            self.pending.append(TextRun(f"{bare.capitalize()}{f' ({_plain(about)})' if about else ''}.", bold=True))
            self.pending.append(TextRun(" "))
        elif is_start:
            self._skip_arguments(_ARGUMENTS_BEFORE_TEXT.get(bare, 0))
        yield from ()

    def _until(self, name: str) -> str:
        end = self.text.find(f"\\end{{{name}}}", self.place)
        content = self.text[self.place : end if end >= 0 else len(self.text)]
        self.place = end + len(name) + 6 if end >= 0 else len(self.text)
        return content

    def _table(self, name: str, content: str) -> None:
        inner = _LatexReader(content, self.kept)
        for _ in range(1 + (name in {"tabularx", "tabulary"})):
            inner.argument()
        rows: list[list[str]] = []
        down: dict[int, tuple[int, str]] = {}
        for line in re.split(r"\\\\(?:\[[^\]]*\])?|\\tabularnewline", content[inner.place :]):
            row = _RULES.sub("", line)
            cells = self._row(re.split(r"(?<!\\)&", row), down) if row.strip() else []
            rows += [cells] if any(cells) else []
        self.blocks += [Table(rows)] if rows else []

    def _row(self, parts: Sequence[str], down: dict[int, tuple[int, str]]) -> list[str]:
        """Return the cells of a table row.

        If a cell covers several columns or rows and its text is short, the text is repeated in all of them. `down`
        contains the cells that extend down from earlier rows: for each column, the number of remaining rows and the
        text.
        """
        cells: list[str] = []
        for part in parts:
            text, across, rows = self._cell(part)
            left, above = down.pop(len(cells), (0, ""))
            if left > 1:
                down[len(cells)] = (left - 1, above)
            if rows > 1:
                down[len(cells)] = (rows - 1, text if len(text) <= MOST_REPEATED else "")
            cells.append(text or (above if left else ""))
            cells += [text if len(text) <= MOST_REPEATED else ""] * (across - 1)
        return cells

    def _cell(self, text: str) -> tuple[str, int, int]:
        """Return the text of a cell, and how many columns and rows it spans."""
        spans = {"column": 1, "row": 1}
        while found := _SPAN.match(text):
            spans[found[1]] = min(int(found[2]), _MOST_SPAN)
            text = _balanced(text, found.end())[0]
        shown = inline(_LatexReader(text, self.kept).runs(TextRun("")), one_line=True).strip()
        return shown, max(spans["column"], 1), max(spans["row"], 1)


def _typographic(text: str) -> str:
    for written, shown in _DASHES:
        text = text.replace(written, shown)
    return " " if text == "\n" else text


PROCESSOR = Processor((SourceType.LATEX,), extract)
