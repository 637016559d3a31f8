"""Detects the type of a text file from features that only one type has, its name and media type, or its structure."""

from __future__ import annotations

import re

from octavo.extract.extracted import SourceType

_BY_SUFFIX = {
    ".adoc": SourceType.ASCIIDOC,
    ".asciidoc": SourceType.ASCIIDOC,
    ".csv": SourceType.CSV,
    ".eml": SourceType.EML,
    ".htm": SourceType.HTML,
    ".html": SourceType.HTML,
    ".ipynb": SourceType.IPYNB,
    ".json": SourceType.JSON,
    ".jsonl": SourceType.JSON,
    ".latex": SourceType.LATEX,
    ".markdown": SourceType.MARKDOWN,
    ".md": SourceType.MARKDOWN,
    ".mdx": SourceType.MARKDOWN,
    ".mht": SourceType.MHTML,
    ".mhtml": SourceType.MHTML,
    ".ndjson": SourceType.JSON,
    ".org": SourceType.ORG,
    ".rest": SourceType.RST,
    ".rst": SourceType.RST,
    ".tab": SourceType.CSV,
    ".tex": SourceType.LATEX,
    ".tsv": SourceType.CSV,
    ".xhtml": SourceType.HTML,
    ".xml": SourceType.XML,
}
_BY_MEDIA_TYPE = {
    "application/json": SourceType.JSON,
    "application/x-ipynb+json": SourceType.IPYNB,
    "application/x-ndjson": SourceType.JSON,
    "application/x-tex": SourceType.LATEX,
    "application/xhtml+xml": SourceType.HTML,
    "application/xml": SourceType.XML,
    "message/rfc822": SourceType.EML,
    "multipart/related": SourceType.MHTML,
    "text/asciidoc": SourceType.ASCIIDOC,
    "text/csv": SourceType.CSV,
    "text/html": SourceType.HTML,
    "text/markdown": SourceType.MARKDOWN,
    "text/org": SourceType.ORG,
    "text/tab-separated-values": SourceType.CSV,
    "text/x-rst": SourceType.RST,
    "text/xml": SourceType.XML,
}
# Text files of other programs are not Markdown, even if their comments look like it.
_MAYBE_MARKDOWN = frozenset({"", ".txt", ".text"})

_PROLOGUE = re.compile(r"(?:\s+|\ufeff|<\?xml[^>]{0,200}\?>|<!--.{0,4000}?-->)*", re.DOTALL)
_HTML_ROOT = re.compile(r"<!doctype\s+html|<html[\s>]|<head[\s>]|<body[\s>]", re.IGNORECASE)
_HTML_TAG = re.compile(r"</(?:a|body|div|h[1-6]|head|li|p|span|table|title|ul)\s*>|<(?:br|p)\s*/?>", re.IGNORECASE)
_SVG_ROOT = re.compile(r"<!doctype\s+svg\b|<svg[\s>]", re.IGNORECASE)
_DOCTYPE = re.compile(r"<!DOCTYPE\b[^\[>]{0,1000}(?:\[[^\]]{0,10000}\]\s*)?>\s*", re.IGNORECASE)
_XML_ROOT = re.compile(r"<(?:[A-Za-z_][\w.-]{0,100}:)?([A-Za-z_][\w.-]{0,200})(?=[\s/>])")
_JATS = re.compile(r"//DTD (?:JATS|Journal)|<article\b[^>]{0,2000}\b(?:article-type|dtd-version)=|<article-meta\b")
_DOCBOOK = re.compile(r"//DTD DocBook|https?://docbook\.org/ns/docbook", re.IGNORECASE)

_VTT = re.compile(r"\ufeff?WEBVTT(?=[ \t\n]|\Z)")
_SRT = re.compile(r"\s*\d{1,6}[ \t]*\n\d{1,3}:\d{2}:\d{2}[,.]\d{1,3} +--> +\d{1,3}:\d{2}:\d{2}[,.]\d{1,3}")
# The start of an object, or of a list of objects.
_JSON = re.compile(r'\ufeff?\s*(?:\[\s*)?\{\s*"(?:[^"\\\n]|\\.){0,200}"\s*:')
_LABELLED_JSON = re.compile(r'\ufeff?\s*(?:[\[{"]|-?\d|true\b|false\b|null\b)')
_NOTEBOOK_CELL = re.compile(r'"(?:cell_type|nbformat)"\s*:')

_LATEX = re.compile(r"^[ \t]*\\(?:documentclass|documentstyle)\b", re.MULTILINE)
_LATEX_COMMAND = re.compile(r"\\(?:begin|section|chapter|input|def|newcommand|usepackage|[a-zA-Z]+\{)")
_ORG = re.compile(r"^#\+(?:title|author|date|begin_src|options|startup|property):?\s", re.IGNORECASE | re.MULTILINE)
_RST_DIRECTIVE = re.compile(r"^\.\. (?:_[^:\n]{1,100}:|[a-z][\w-]{1,30}::(?:\s|$))", re.MULTILINE)
_RST_TITLE = re.compile(r"^\S[^\n]{2,200}\n([=\-~^\"'`#*+])\1{2,200}[ \t]*$", re.MULTILINE)
_ASCIIDOC_TITLE = re.compile(r"\A\s*= \S[^\n]*$", re.MULTILINE)
_ASCIIDOC_MARK = re.compile(r"^(?:={2,5} \S|:[a-z][\w-]{0,50}:|\[source\b|\|===)", re.MULTILINE)

_MAIL_HEAD = re.compile(r"(?:[A-Za-z][A-Za-z0-9-]{1,40}:[^\n]*\n(?:[ \t][^\n]*\n)*)+")
_MAIL_FIELD = re.compile(r"^([A-Za-z-]+):", re.MULTILINE)
# Memos also have "From:" and "Subject:". Only programs write these fields.
_MAIL_BY_PROGRAM = frozenset({"message-id", "mime-version", "received", "return-path", "delivered-to"})
_MAIL_BY_PERSON = frozenset({"from", "to", "subject", "date"})

_SAVED_BY_BROWSER = re.compile(r"From: <?Saved by ", re.IGNORECASE)
_ROOT_CHARACTERS = 2000
# A file that is labelled with one of these types must contain a match.
_NEEDED = {
    SourceType.JSON: re.compile(rf"\A{_LABELLED_JSON.pattern}"),
    SourceType.IPYNB: _NOTEBOOK_CELL,
    SourceType.XML: re.compile(r"\A\ufeff?\s*<[A-Za-z_?!]"),
    SourceType.LATEX: _LATEX_COMMAND,
}

_SEPARATORS = ",;\t|"
_LEAST_ROWS = 3
_COMPARED_ROWS = 20

_TABLE_HEAD = re.compile(r"^[^\n|]*\|[^\n]*\n[ \t]*\|?[ \t]*:?-{3,}:?[ \t]*\|[ \t]*:?-{3,}", re.MULTILINE)
# One of these features is enough, because people only write them in Markdown.
_CLEAR_MARKDOWN = (
    re.compile(r"\A---\n(?:[A-Za-z_][\w-]*:[^\n]*\n(?:[ \t-][^\n]*\n)*)+---(?:\n|$)"),  # front matter
    re.compile(r"\[[^\[\]\n]{1,200}\]\((?:https?://|mailto:)[^()\s]{1,1000}\)"),
    _TABLE_HEAD,
    re.compile(r"(?<!\S)\*\*\w(?:[^*\n]{0,200}[^*\s])?\*\*(?!\w)"),
    re.compile(r"^[ \t]*[-*+] \[[ xX]\] \S", re.MULTILINE),
)
_FENCE = re.compile(r"^(?:```|~~~)([\w+-]*)[ \t]*$", re.MULTILINE)
# A heading has an empty line or the start of the text before it, and prose, a list or an empty line after it.
_HEADING = re.compile(
    r"(?:\A|(?<=\n\n))#{1,6} (?!#)\S[^\n]*"
    r"(?=\n(?:[ \t]*$|[-*+>] |\d{1,3}\. |[^\W\d_][\w'\u2019-]*,? \w[^=;{}\n]*$)|\Z)",
    re.MULTILINE,
)
# In scripts and configuration files, the same character starts a comment.
_STATEMENT = re.compile(
    r"[ \t]*(?:[\w.\[\]-]+[ \t]*=[ \t]*\S|(?:import|from \S+ import|def|export|echo|sudo|cd|git|pip|npm|apt) \S"
    r"|[\w.-]+\([^\n]*\)[ \t]*$|[^\n]*[;{}][ \t]*$)"
)
_MOST_STATEMENTS = 0.3
# Two of these features are enough.
_MARKDOWN_SIGNS = (
    re.compile(r"^#{1,6} \S[^\n]*\n(?:\n|$)", re.MULTILINE),  # a heading followed by an empty line
    re.compile(r"^(?:```|~~~)[\w+-]*$", re.MULTILINE),
    re.compile(r"\[[^\]\n]{1,200}\]\([^)\s]{1,500}\)"),
    re.compile(r"^\|?(?:[ \t]*:?-{3,}:?[ \t]*\|)+", re.MULTILINE),
)


def text_kind(text: str, suffix: str, media_type: str) -> SourceType:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    label = _BY_SUFFIX.get(suffix) or _BY_MEDIA_TYPE.get(media_type)
    return _unmistakable(text) or _confirmed(text, label) or _structural(text, suffix) or SourceType.TEXT


def _unmistakable(text: str) -> SourceType | None:
    prologue = _PROLOGUE.match(text)
    start = prologue.end() if prologue else 0
    if _HTML_ROOT.match(text, start):
        return SourceType.HTML
    if _SVG_ROOT.match(text, start):
        return SourceType.OTHER
    if _VTT.match(text):
        return SourceType.VTT
    if _SRT.match(text):
        return SourceType.SRT
    if _JSON.match(text):
        return SourceType.IPYNB if _NOTEBOOK_CELL.search(text) else SourceType.JSON
    return _mail_kind(text) or _xml_kind(text, start) or (SourceType.LATEX if _LATEX.search(text) else None)


def _mail_kind(text: str) -> SourceType | None:
    fields = _mail_fields(text)
    if "snapshot-content-location" in fields:
        return SourceType.MHTML
    if _SAVED_BY_BROWSER.match(text):
        return SourceType.MHTML
    return SourceType.EML if fields & _MAIL_BY_PROGRAM else None


def _xml_kind(text: str, start: int) -> SourceType | None:
    """Return the type of an XML file, based on its root element and document type.

    Returns None if the text is not recognised as XML.
    """
    doctype = _DOCTYPE.match(text, start)
    prologue = _PROLOGUE.match(text, doctype.end()) if doctype else None
    root = _XML_ROOT.match(text, prologue.end() if prologue else start)
    if not root:
        return None
    if root[1] == "FictionBook":
        return SourceType.FB2
    if root[1] == "article" and _JATS.search(text):
        return SourceType.JATS
    if _DOCBOOK.search(text[: root.end() + _ROOT_CHARACTERS]):
        return SourceType.DOCBOOK
    return SourceType.XML if doctype or text.lstrip("\ufeff").startswith("<?xml") else None


def _confirmed(text: str, label: SourceType | None) -> SourceType | None:
    """Return the type that the file name or media type declares. Returns None if the text contradicts it."""
    if label is SourceType.HTML and not _HTML_TAG.search(text):
        return None
    if label in {SourceType.EML, SourceType.MHTML} and not _mail_fields(text) & _MAIL_BY_PERSON:
        return None
    needed = _NEEDED.get(label) if label else None
    return label if not needed or needed.search(text) else None


def _structural(text: str, suffix: str) -> SourceType | None:
    if suffix not in _MAYBE_MARKDOWN or text.startswith("#!"):
        return None
    if not suffix and _is_table(text) and not _TABLE_HEAD.search(text):
        return SourceType.CSV
    if _ORG.search(text):
        return SourceType.ORG
    if _RST_DIRECTIVE.search(text) and _RST_TITLE.search(text):
        return SourceType.RST
    if _ASCIIDOC_TITLE.match(text) and _ASCIIDOC_MARK.search(text):
        return SourceType.ASCIIDOC
    return SourceType.MARKDOWN if _is_markdown(text) else None


def _is_markdown(text: str) -> bool:
    if _is_fenced(text) or any(mark.search(text) for mark in _CLEAR_MARKDOWN):
        return True
    signs = sum(sign.search(text) is not None for sign in _MARKDOWN_SIGNS)
    return signs > 1 or (_HEADING.search(text) is not None and not _is_script(text))


def _is_fenced(text: str) -> bool:
    """Whether the text has a fenced block: an opening fence, and a later fence without a language."""
    return not all(_FENCE.findall(text)[1:])


def _is_script(text: str) -> bool:
    """Whether a text is probably a script, because many lines are statements.

    In a script, `#` starts a comment, not a Markdown heading.
    """
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    statements = sum(_STATEMENT.match(line) is not None for line in lines)
    return bool(lines) and statements >= _MOST_STATEMENTS * len(lines)


def _mail_fields(text: str) -> set[str]:
    """Return the names of the header fields of an email.

    Returns an empty set if the text does not start like an email.
    """
    head = _MAIL_HEAD.match(text)
    return {name.lower() for name in _MAIL_FIELD.findall(head.group())} if head else set()


def _is_table(text: str) -> bool:
    """Whether a text is a table in which a character such as a comma or tab separates the cells.

    Each of the first rows must contain the same number of separators, so a table is not recognised if one of its cells
    contains the separator.
    """
    rows = [row for row in text.split("\n", _COMPARED_ROWS + 1)[:_COMPARED_ROWS] if row.strip()]
    counts = [{row.count(separator) for row in rows} for separator in _SEPARATORS]
    return len(rows) >= _LEAST_ROWS and any(len(count) == 1 and 0 not in count for count in counts)
