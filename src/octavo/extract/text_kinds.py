"""Detects the kind of a text: by features of only one kind, then by file name and media type, then by structure."""

from __future__ import annotations

import re

from octavo.extract.extracted import SourceType

_BY_SUFFIX = {
    ".csv": SourceType.CSV,
    ".eml": SourceType.EML,
    ".htm": SourceType.HTML,
    ".html": SourceType.HTML,
    ".markdown": SourceType.MARKDOWN,
    ".md": SourceType.MARKDOWN,
    ".mdx": SourceType.MARKDOWN,
    ".tab": SourceType.CSV,
    ".tsv": SourceType.CSV,
    ".xhtml": SourceType.HTML,
}
_BY_MEDIA_TYPE = {
    "application/xhtml+xml": SourceType.HTML,
    "message/rfc822": SourceType.EML,
    "text/csv": SourceType.CSV,
    "text/html": SourceType.HTML,
    "text/markdown": SourceType.MARKDOWN,
    "text/tab-separated-values": SourceType.CSV,
}
# Text files of other programs are not Markdown, even if their comments look like it.
_MAYBE_MARKDOWN = frozenset({"", ".txt", ".text"})

_PROLOGUE = re.compile(r"(?:\s+|\ufeff|<\?xml[^>]{0,200}\?>|<!--.{0,4000}?-->)*", re.DOTALL)
_HTML_ROOT = re.compile(r"<!doctype\s+html|<html[\s>]|<head[\s>]|<body[\s>]", re.IGNORECASE)
_HTML_TAG = re.compile(r"</(?:a|body|div|h[1-6]|head|li|p|span|table|title|ul)\s*>|<(?:br|p)\s*/?>", re.IGNORECASE)
_SVG_ROOT = re.compile(r"<!doctype\s+svg\b|<svg[\s>]", re.IGNORECASE)

_MAIL_HEAD = re.compile(r"(?:[A-Za-z][A-Za-z0-9-]{1,40}:[^\n]*\n(?:[ \t][^\n]*\n)*)+")
_MAIL_FIELD = re.compile(r"^([A-Za-z-]+):", re.MULTILINE)
# Memos have "From:" and "Subject:" too; only programs write these.
_MAIL_BY_PROGRAM = frozenset({"message-id", "mime-version", "received", "return-path", "delivered-to"})
_MAIL_BY_PERSON = frozenset({"from", "to", "subject", "date"})

_SEPARATORS = ",;\t|"
_LEAST_ROWS = 3
_COMPARED_ROWS = 20

_TABLE_HEAD = re.compile(r"^[^\n|]*\|[^\n]*\n[ \t]*\|?[ \t]*:?-{3,}:?[ \t]*\|[ \t]*:?-{3,}", re.MULTILINE)
# One of these is enough: people only write them as Markdown.
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
# In scripts and settings the same sign starts a comment.
_STATEMENT = re.compile(
    r"[ \t]*(?:[\w.\[\]-]+[ \t]*=[ \t]*\S|(?:import|from \S+ import|def|export|echo|sudo|cd|git|pip|npm|apt) \S"
    r"|[\w.-]+\([^\n]*\)[ \t]*$|[^\n]*[;{}][ \t]*$)"
)
_MOST_STATEMENTS = 0.3
# Two of these are enough.
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
    return SourceType.EML if _mail_fields(text) & _MAIL_BY_PROGRAM else None


def _confirmed(text: str, label: SourceType | None) -> SourceType | None:
    """The type that the file name or media type declares, unless the text contradicts it."""
    if label is SourceType.HTML and not _HTML_TAG.search(text):
        return None
    if label is SourceType.EML and not _mail_fields(text) & _MAIL_BY_PERSON:
        return None
    return label


def _structural(text: str, suffix: str) -> SourceType | None:
    if suffix not in _MAYBE_MARKDOWN or text.startswith("#!"):
        return None
    if not suffix and _is_table(text) and not _TABLE_HEAD.search(text):
        return SourceType.CSV
    return SourceType.MARKDOWN if _is_markdown(text) else None


def _is_markdown(text: str) -> bool:
    if _is_fenced(text) or any(mark.search(text) for mark in _CLEAR_MARKDOWN):
        return True
    signs = sum(sign.search(text) is not None for sign in _MARKDOWN_SIGNS)
    return signs > 1 or (_HEADING.search(text) is not None and not _is_script(text))


def _is_fenced(text: str) -> bool:
    """Whether the text has a fenced block: a fence, and a later one without a language."""
    return not all(_FENCE.findall(text)[1:])


def _is_script(text: str) -> bool:
    """Whether many lines are statements, so that `#` starts comments."""
    lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
    statements = sum(_STATEMENT.match(line) is not None for line in lines)
    return bool(lines) and statements >= _MOST_STATEMENTS * len(lines)


def _mail_fields(text: str) -> set[str]:
    """The header names at the start of an email; empty if the text does not start with a header."""
    head = _MAIL_HEAD.match(text)
    return {name.lower() for name in _MAIL_FIELD.findall(head.group())} if head else set()


def _is_table(text: str) -> bool:
    """Whether all rows contain the same number of separators. A separator inside a cell makes this fail."""
    rows = [row for row in text.split("\n", _COMPARED_ROWS + 1)[:_COMPARED_ROWS] if row.strip()]
    counts = [{row.count(separator) for row in rows} for separator in _SEPARATORS]
    return len(rows) >= _LEAST_ROWS and any(len(count) == 1 and 0 not in count for count in counts)
