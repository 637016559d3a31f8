"""Finds texts on pages that nobody can translate: in the templates, and on rendered pages in a made-up language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from gettext import NullTranslations
from html.parser import HTMLParser
from typing import NamedTuple

from jinja2 import Environment

LEXER = Environment(keep_trailing_newline=True).lexer
# Attributes that people read or hear.
SHOWN = frozenset({"alt", "aria-label", "data-drops", "data-label", "placeholder", "title"})
UNTRANSLATED = frozenset({"code", "kbd", "pre", "script", "style"})
VOID = frozenset({"br", "circle", "hr", "img", "input", "link", "meta", "path", "rect", "use"})
# Names, units and examples that are the same in every language.
NAMES = frozenset(
    [
        "Octavo",
        "Markdown",
        "JSON",
        "CSV",
        "XML",
        "PDF",
        "PDFs",
        "ZIP",
        "JPEG",
        "SHA-256",
        "UTC",
        "URL",
        "OAuth",
        "IBAN",
        "DOI",
        "ISBN",
        "HTTP",
        "DOCX",
        "EPUB",
        "px",
        "MB",
        "KB",
        "GB",
        "Esc",
        "Enter",
        "EUR",
        "type:invoice",
        "after:2024",
        "Ctrl",
        "USD",
        "PID",
        "OCR",
        "WebDAV",
        "YouTube",
        "Anthropic",
        "OpenAI",
        "Google",
        "Gemini",
        "Ollama",
    ]
)
# Words, and abbreviations such as "p."
WORD = re.compile(r"[^\W\d_][^\W\d_':-]+(?::[\w]+)?|(?<![\w.])[a-z]\.(?=\s)")
# Formats of numbers and dates that are the same in every language, which is right only for times.
ENGLISH_FORMAT = re.compile(r"\{:[^}]*,|\{:[^}]*%-?[aAbBdmyYp]|^[^{]*%-?[aAbBp]")
CODE = re.compile(r"\b[A-Z]+(?:_[A-Z]+)+\b")
OPEN, SHUT = "⟦", "⟧"
BETWEEN_TAGS = re.compile(r"((?:<[^<>]+>)*)([^<>]+)")


class Marked(NullTranslations):
    """A made-up language, in which every text is between brackets."""

    def gettext(self, message: str) -> str:
        return message if OPEN in message else BETWEEN_TAGS.sub(rf"\1{OPEN}\2{SHUT}", message)

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)


class Piece(NamedTuple):
    kind: str
    code: str


def words_in(text: str) -> list[str]:
    """Return the words of a text outside the brackets. Names are not words of any language."""
    while (shorter := re.sub(f"{OPEN}[^{OPEN}{SHUT}]*{SHUT}", " ", text)) != text:
        text = shorter
    return [word for word in WORD.findall(CODE.sub(" ", text)) if word not in NAMES]


class Texts(HTMLParser):
    """Collects the words that people read, outside of content. Content has `dir="auto"`, or its own language."""

    def __init__(self, language: str = "") -> None:
        super().__init__()
        self.language = language
        self.found: list[str] = []
        self.stack: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        classes = (given.get("class") or "").split()
        own = given.get("lang") not in {None, self.language} and tag != "html"
        hides = tag in UNTRANSLATED or given.get("dir") == "auto" or own or "mono" in classes
        if not (self.is_hidden or hides):
            for name in SHOWN & given.keys():
                self.add(given[name] or "")
        if tag not in VOID:
            self.stack.append((tag, hides))

    def handle_endtag(self, tag: str) -> None:
        while self.stack and self.stack.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if not self.is_hidden:
            self.add(data)

    @property
    def is_hidden(self) -> bool:
        return any(hides for _, hides in self.stack)

    def add(self, text: str) -> None:
        if words_in(text):
            self.found.append(" ".join(text.split()))


def unmarked_in_page(page: str, language: str) -> list[str]:
    texts = Texts(language)
    texts.feed(page)
    return texts.found


def unmarked_in_template(source: str) -> list[str]:
    """Return the texts of a template that are outside `_()` and `{% trans %}`, and the ones in its expressions."""
    plain, literals, skips = "", list[str](), False
    for piece in pieces_of(source):
        if piece.kind == "block":
            name = piece.code.split()[0]
            skips = name == "trans" or (skips and name != "endtrans") or piece.code == "block body_class"
            skips = skips and name != "endblock"
        if piece.kind == "data":
            plain += "" if skips else piece.code
        else:
            plain += "" if piece.kind == "comment" else "\N{OBJECT REPLACEMENT CHARACTER}"
            literals += literals_in(piece.code) if piece.kind == "variable" else []
    texts = Texts()
    texts.feed(plain)
    return texts.found + literals


def pieces_of(source: str) -> Iterator[Piece]:
    kind, code = "", ""
    for _, token, value in LEXER.tokeniter(source, None):
        if token == "data":
            yield Piece("data", value)
        elif token.endswith("_begin"):
            kind, code = token.removesuffix("_begin"), ""
        elif token.endswith("_end"):
            yield Piece(kind, code.strip())
        else:
            code += value


def literals_in(code: str) -> list[str]:
    """Return the string literals of an expression that look like sentences or labels, and are not marked."""
    found = re.finditer(
        r"""(?P<before>[\w.]*\(\s*|(?:==|!=|in)\s*)?(?P<text>"[^"]*"|'[^']*')(?P<after>\s*(?:==|!=|:))?""", code
    )
    marked = re.compile(r"(?:_|n?gettext|asset|icon|replace|startswith)\(\s*|(?:==|!=|in)\s*")
    inside = re.compile(r"""ngettext\((?:[^()"]|"[^"]*")*$""")
    return [
        one["text"]
        for one in found
        if re.match(r"[A-Z][a-z]|[a-z]+ [a-z]+ [a-z]+|[,;:(] ?[a-z]|[a-z]\. ", one["text"][1:-1])
        and not marked.fullmatch(one["before"] or "")
        and not one["after"]
        and not inside.search(code[: one.start("text")])
        and words_in(one["text"])
    ] + [text for text in re.findall(r"\"[^\"]*\"|'[^']*'", code) if ENGLISH_FORMAT.search(text)]
