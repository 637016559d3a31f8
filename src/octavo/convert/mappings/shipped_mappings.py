"""Loads the mappings that ship with Octavo, and parses the text of any mapping.

Templates for the invoice2data program are converted to mappings. A template contains patterns for the documents of one
sender.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.resources import files
from typing import Any, cast

from octavo.convert.errors import BadMapping, UnknownMapping
from octavo.convert.mappings.mapping import TABLE, Column, Field, Group, LineRule, Mapping, Options, UserPattern
from octavo.convert.mappings.mapping_files import (
    PatternReader,
    Settings,
    check_size,
    compile_patterns,
    load_yaml,
    pattern_reader,
    read_mapping,
)
from octavo.records.conversions import MappingSummary

_REQUIRED = ("date", "amount", "invoice_number")
_TYPES = {"int": "number", "float": "number", "date": "date"}
_NOT_A_NAME = re.compile(r"[^a-z0-9]+")


def is_template(read: Settings) -> bool:
    """Whether a file is an invoice2data template and not a mapping.

    A template has `keywords`, but neither `xml` nor `extends`.
    """
    return "xml" not in read and "extends" not in read and "keywords" in read


def read_template(text: str, file: str) -> Mapping:
    """Convert the text of an invoice2data template to a mapping. Raises `BadMapping`."""
    mapping = _Template(load_yaml(text, file), file).mapping()
    check_size(mapping, file)
    return mapping


class _Template:
    def __init__(self, read: Settings, file: str) -> None:
        self._read = read
        self._file = file
        self._pattern: PatternReader = pattern_reader(file)
        self._options: Settings = _table(read.get("options"))

    def mapping(self) -> Mapping:
        keywords = self._patterns("keywords", self._read.get("keywords"))
        if not keywords:
            raise BadMapping(f"{self._file}: keywords: at least one is required")
        issuer = str(self._read.get("issuer") or keywords[0].text)
        fields = {one.name: one for one in self._constant(issuer)}
        fields |= {one.name: one for one in self._fields()}
        return Mapping(
            name=f"{_name(self._file)}_v1",
            title=f"Documents of {issuer}",
            root="Document",
            fields=tuple(fields.values()),
            keywords=keywords,
            exclude_keywords=self._patterns("exclude_keywords", self._read.get("exclude_keywords")),
            options=self._read_options(),
        )

    def _constant(self, issuer: str) -> Iterator[Field]:
        yield Field("issuer", "text", "issuer", value=issuer)
        yield Field("currency", "currency", "currency", value=str(self._options.get("currency", "EUR")))
        yield Field("desc", "text", "desc", value=f"Invoice from {issuer}")

    def _fields(self) -> Iterator[Field]:
        required = self._read.get("required_fields", _REQUIRED)
        for name, given in _table(self._read.get("fields")).items():
            yield self._field(name, given, is_required=name in required)
        if lines := self._read.get("lines"):
            yield self._table("lines", [lines])
        for table in _list(self._read.get("tables")):
            yield from self._body(_table(table))

    def _field(self, name: str, given: object, *, is_required: bool) -> Field:
        settings = _table(given)
        parser = settings.get("parser", "regex")
        if parser == "lines":
            return self._table(name, _list(settings.get("rules")) or [settings])
        if parser == "static":
            return Field(name, "text", name, value=str(settings.get("value", "")))
        if parser != "regex":
            raise BadMapping(f"{self._file}: {name}: unknown parser {parser!r}; use regex, lines or static")
        if name.startswith("static_"):
            own = name.removeprefix("static_")
            return Field(own, "text", own, value=str(given))
        own = name.removeprefix("sum_")
        patterns = self._patterns(name, settings.get("regex", given))
        group = "sum" if name != own else str(settings.get("group", "first"))
        if group not in list(Group):
            raise BadMapping(f"{self._file}: {name}: unknown group {group!r}; use one of {', '.join(Group)}")
        kind = _TYPES.get(str(settings.get("type"))) or _type_by_name(own)
        return Field(own, kind, own, required=is_required, patterns=patterns, group=Group(group))

    def _table(self, name: str, rules: list[object]) -> Field:
        read = [_table(rule) for rule in rules]
        types = {key: str(kind) for rule in read for key, kind in _table(rule.get("types")).items()}
        made = tuple(self._rule(name, rule) for rule in read)
        names = dict.fromkeys(
            group for rule in made for pattern in (*rule.first, *rule.line, *rule.last) for group in pattern.group_names
        )
        columns = tuple(Column(one, _TYPES.get(types.get(one, ""), "text"), one) for one in names)
        if not columns:
            raise BadMapping(f"{self._file}: {name}: its patterns must have named groups")
        return Field(name, TABLE, name, row_xml="row", columns=columns, rules=made)

    def _rule(self, name: str, read: Settings) -> LineRule:
        first, line, last, skip = (
            self._patterns(name, read.get(key)) for key in ("first_line", "line", "last_line", "skip_line")
        )
        start, end = (self._pattern(name, str(read.get(key, ""))) for key in ("start", "end"))
        return LineRule(start, end, first, line, last, skip)

    def _body(self, read: Settings) -> Iterator[Field]:
        """Make a field for each named group in the table pattern of a template.

        Only the first matching line is used.
        """
        start, body = str(read.get("start", "")), str(read.get("body", ""))
        for name in self._pattern("tables", body).group_names:
            # Each field gets the same pattern, in which only the group of this field captures text.
            only = re.sub(r"\(\?P<(\w+)>", lambda found, own=name: "(" if found[1] == own else "(?:", body)
            yield Field(name, _type_by_name(name), name, patterns=(self._pattern("tables", f"(?s:{start}.*?){only}"),))

    def _read_options(self) -> Options:
        given = self._options
        pairs = [cast("list[Any]", pair) for pair in _list(given.get("replace")) if isinstance(pair, list)]
        decimal = str(given.get("decimal_separator", "."))
        return Options(
            decimal=decimal if decimal in {".", ","} else None,
            date_formats=tuple(map(str, _list(given.get("date_formats")))),
            remove_whitespace=bool(given.get("remove_whitespace")),
            remove_accents=bool(given.get("remove_accents")),
            lowercase=bool(given.get("lowercase")),
            replace=tuple((self._pattern("replace", str(pair[0])), str(pair[1])) for pair in pairs if len(pair) == 2),  # noqa: PLR2004
        )

    def _patterns(self, where: str, given: object) -> tuple[UserPattern, ...]:
        return tuple(self._pattern(where, str(one)) for one in _list(given))


def _type_by_name(name: str) -> str:
    """Return the type of a field. In invoice2data templates, the beginning of the field's name determines its type."""
    if name.startswith("date"):
        return "date"
    return "amount" if name.startswith("amount") else "text"


def _name(file: str) -> str:
    plain = _NOT_A_NAME.sub("_", file.rsplit("/", 1)[-1].rsplit(".", 1)[0].lower()).strip("_")
    return plain if plain[:1].isalpha() else f"template_{plain}"


def _table(given: object) -> Settings:
    return {str(key): value for key, value in cast("dict[Any, Any]", given).items()} if isinstance(given, dict) else {}


def _list(given: object) -> list[object]:
    if given is None:
        return []
    return list(cast("list[object]", given)) if isinstance(given, list) else [given]


_FOLDER = files("octavo.convert.mappings").joinpath("shipped")
_ENDING = ".yaml"


def shipped_names() -> list[str]:
    return sorted(file.name.removesuffix(_ENDING) for file in _FOLDER.iterdir() if file.name.endswith(_ENDING))


def shipped_text(name: str) -> str:
    """Return the content of a shipped mapping file.

    If there is no such file, raises `UnknownMapping` with a list of the shipped mappings.
    """
    if name not in shipped_names():
        raise UnknownMapping(f"{name[:80]!r} is not one of {', '.join(shipped_names())}.")
    return _FOLDER.joinpath(name + _ENDING).read_text(encoding="utf-8")


@lru_cache(maxsize=32)
def load_shipped(name: str) -> Mapping:
    return read_mapping(shipped_text(name), name + _ENDING, shipped_text)


def mapping_from_text(text: str, file: str) -> Mapping:
    """Parse and check a mapping or an invoice2data template. Raises `BadMapping`.

    Patterns are compiled to check them, so text written by users must be checked in the sandbox.
    """
    mapping = parse_mapping(text, file)
    compile_patterns(mapping, file)
    return mapping


def summarise(mapping: Mapping) -> MappingSummary:
    return MappingSummary(
        name=mapping.name,
        title=mapping.title,
        fields=[field.name for field in mapping.fields],
        required=[field.name for field in mapping.fields if field.required],
    )


@lru_cache(maxsize=32)
def parse_mapping(text: str, file: str) -> Mapping:
    """Parse a mapping that was checked when it was added. Its patterns are not compiled."""
    if is_template(load_yaml(text, file)):
        return read_template(text, file)
    return read_mapping(text, file, shipped_text)
