"""Reads mappings from YAML files and validates them. Every error names the file, the field and the reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from importlib import import_module
from typing import Any, TypeVar

from octavo.convert.errors import BadMapping
from octavo.convert.mappings.mapping import (
    FIELD_TYPES,
    TABLE,
    Check,
    Column,
    Field,
    Group,
    LineRule,
    Mapping,
    Options,
    Otherwise,
    Prefer,
    UserPattern,
    read_check,
)
from octavo.facts.finding import FACTS, KINDS, TABLE_FACTS

# Anyone can send a mapping, so every dimension is limited. The largest shipped mapping needs less than a tenth of each.
MOST_BYTES = 256 * 1024
MOST_NODES = 20_000
MOST_DEPTH = 12
MOST_FIELDS = 300
MOST_COLUMNS = 300
MOST_LABELS = 5000
MOST_LABEL = 200
MOST_PATTERNS = 500
MOST_PATTERN = 2000
MOST_CHECKS = 100
MOST_DATE_FORMATS = 50
MOST_TEXT = 2000
MOST_NAME = 80
_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
_FULL_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}_v[1-9]\d{0,5}")
_XML_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,79}")
_TOP = {
    "name",
    "title",
    "extends",
    "xml",
    "fields",
    "checks",
    "other_labels",
    "keywords",
    "exclude_keywords",
    "evidence",
    "options",
}
_FIELD = {
    *(
        "type",
        "xml",
        "required",
        "labels",
        "weak_labels",
        "patterns",
        "group",
        "value",
        "near",
        "otherwise",
        "prefer",
        "fact",
    ),
    *("embedded", "row", "columns", "rules"),
}
_COLUMN = {"type", "xml", "labels", "embedded"}
_RULE = {"start", "end", "first_line", "line", "last_line", "skip_line"}
_OPTIONS = {"decimal_separator", "date_formats", "remove_whitespace", "remove_accents", "lowercase", "replace"}

_yaml: Any = import_module("yaml")  # the library has no types
Choice = TypeVar("Choice", bound=StrEnum)
Settings = dict[str, Any]


class _Loader(getattr(_yaml, "CSafeLoader", _yaml.SafeLoader)):  # type: ignore[misc]
    """A YAML loader that rejects duplicate keys. By default, PyYAML silently uses the last value of a repeated key."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002
        keys: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key.value, str):
                raise _yaml.YAMLError("a key must be text")
            if key.value in keys:
                raise _yaml.YAMLError(f"{key.value[:80]!r} is a duplicate key")
            keys.add(key.value)
        return super().construct_mapping(node, deep=deep)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def load_yaml(text: str, file: str) -> Settings:
    """Parse a YAML file. The top level must consist of keys and values."""
    if len(text) > MOST_BYTES:
        raise BadMapping(f"{file}: larger than {MOST_BYTES} bytes")
    try:
        _refuse_bombs(text, file)
        read = _yaml.load(text, Loader=_Loader)
    except (_yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadMapping(f"{file}: invalid YAML: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(read, dict):
        raise BadMapping(f"{file}: must consist of keys and values")
    return {str(key): value for key, value in read.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


def _refuse_bombs(text: str, file: str) -> None:
    """Reject YAML that would expand to far more data than its size suggests ("billion laughs").

    This is checked before any data is built.
    """
    nodes = depth = 0
    for event in _yaml.parse(text, Loader=_Loader):
        if getattr(event, "anchor", None) is not None:
            line = event.start_mark.line + 1
            raise BadMapping(f"{file}: line {line}: anchors (&) and aliases (*) are not allowed; write the value again")
        nodes += isinstance(event, _yaml.NodeEvent)
        depth += isinstance(event, _yaml.CollectionStartEvent) - isinstance(event, _yaml.CollectionEndEvent)
        if isinstance(event, _yaml.ScalarEvent) and len(event.value) > MOST_TEXT:
            line = event.start_mark.line + 1
            raise BadMapping(f"{file}: line {line}: a value can have at most {MOST_TEXT:,} characters")
        if nodes > MOST_NODES:
            raise BadMapping(f"{file}: has more than {MOST_NODES:,} values")
        if depth > MOST_DEPTH:
            raise BadMapping(f"{file}: values are nested more than {MOST_DEPTH} levels deep")


def read_mapping(text: str, file: str, base: Callable[[str], str] | None = None) -> Mapping:
    """Parse a mapping. `base` returns the text of the mapping that this one extends. Raises `BadMapping`."""
    read = load_yaml(text, file)
    if "extends" in read:
        name = str(read["extends"])
        if base is None:
            raise BadMapping(f"{file}: extends: a mapping that is extended must not extend another")
        read = _merge(load_yaml(base(name), f"{name}.yaml"), read)
    return _Reader(file).mapping(read)


def _merge(below: Any, above: Any) -> Any:  # noqa: ANN401
    """Merge two dictionaries recursively. Where values conflict, `above` wins."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    merged: Settings = dict(below)  # pyright: ignore[reportUnknownArgumentType]
    for key, value in above.items():  # pyright: ignore[reportUnknownVariableType]
        merged[str(key)] = _merge(merged[key], value) if key in merged else value  # pyright: ignore[reportUnknownArgumentType]
    return merged


class _Reader:
    """Reads one mapping file. Its errors name the position in the file."""

    def __init__(self, file: str) -> None:
        self._file = file

    def refuse(self, where: str, reason: str) -> BadMapping:
        return BadMapping(f"{self._file}: {where}: {reason}" if where else f"{self._file}: {reason}")

    def mapping(self, read: Settings) -> Mapping:
        self._only("", read, _TOP)
        name = self._text("name", read.get("name"))
        if not _FULL_NAME.fullmatch(name):
            raise self.refuse(
                "name", "can contain only lower-case letters, digits and _, and must end with a version such as _v1"
            )
        fields = tuple(self._field(key, one) for key, one in self._table("fields", read.get("fields")).items())
        if not fields:
            raise self.refuse("fields", "at least one is required")
        mapping = Mapping(
            name=name,
            title=self._text("title", read.get("title", name)),
            root=self._xml_name("xml", read.get("xml")),
            fields=fields,
            checks=tuple(self._check(one) for one in self._list("checks", read.get("checks"))),
            other_labels=self._labels("other_labels", read.get("other_labels")),
            keywords=self._patterns("keywords", read.get("keywords")),
            exclude_keywords=self._patterns("exclude_keywords", read.get("exclude_keywords")),
            evidence=self._known("evidence", read.get("evidence"), KINDS),
            options=self._options(read.get("options")),
        )
        check_size(mapping, self._file)
        self._check_names(mapping)
        return mapping

    def _field(self, name: str, given: object) -> Field:
        read = self._table(name, given)
        self._only(name, read, _FIELD)
        self._own_name(name)
        kind = self._type(name, read.get("type"), also=TABLE)
        made = Field(
            name=name,
            type=kind,
            xml=self._xml_name(name, read.get("xml")),
            required=self._flag(name, "required", read.get("required", False)),
            labels=self._labels(name, read.get("labels")),
            weak_labels=self._labels(name, read.get("weak_labels")),
            patterns=self._patterns(name, read.get("patterns")),
            group=self._choice(name, Group, read.get("group", Group.FIRST)),
            value=self._optional(name, read.get("value")),
            near=self._optional(name, read.get("near")),
            fact=self._known(name, read.get("fact"), FACTS if kind != TABLE else TABLE_FACTS),
            otherwise=self._choice(name, Otherwise, read["otherwise"]) if "otherwise" in read else None,
            prefer=self._choice(name, Prefer, read.get("prefer", Prefer.FIRST)),
            embedded=self._texts(name, read.get("embedded")),
            row_xml=self._xml_name(name, read.get("row")) if kind == TABLE else "",
            columns=tuple(self._columns(name, read)),
            rules=tuple(self._rule(name, one) for one in self._list(name, read.get("rules"))),
        )
        named = (made.labels, made.weak_labels, made.patterns, made.value, made.near, made.otherwise)
        if not any((*named, made.columns, made.fact)):
            raise self.refuse(name, "needs at least one of labels, patterns, value, near, otherwise, fact or columns")
        return made

    def _columns(self, name: str, read: Settings) -> Iterator[Column]:
        if read.get("type") != TABLE:
            if extra := sorted({"row", "columns", "rules"} & read.keys()):
                raise self.refuse(name, f"only a table can have {extra[0]}")
            return
        columns = self._table(f"{name}.columns", read.get("columns"))
        if not columns:
            raise self.refuse(name, "a table needs columns")
        for key, given in columns.items():
            where = f"{name}.{key}"
            one = self._table(where, given)
            self._only(where, one, _COLUMN)
            self._own_name(key)
            labels, embedded = self._labels(where, one.get("labels")), self._texts(where, one.get("embedded"))
            yield Column(
                key, self._type(where, one.get("type")), self._xml_name(where, one.get("xml")), labels, embedded
            )

    def _rule(self, name: str, given: object) -> LineRule:
        where = f"{name}.rules"
        read = self._table(where, given)
        self._only(where, read, _RULE)
        first, line, last, skip = (
            self._patterns(where, read.get(key)) for key in ("first_line", "line", "last_line", "skip_line")
        )
        start, end = (self.pattern(where, self._text(where, read.get(key))) for key in ("start", "end"))
        return LineRule(start, end, first, line, last, skip)

    def _options(self, given: object) -> Options:
        read = self._table("options", given)
        self._only("options", read, _OPTIONS)
        decimal = self._optional("options", read.get("decimal_separator"))
        if decimal not in {None, ".", ","}:
            raise self.refuse("options", "decimal_separator must be a point or a comma")
        flags = {name: self._flag("options", name, read.get(name, False)) for name in _FLAGS}
        replace = tuple(self._replacement(one) for one in self._list("options", read.get("replace")))
        return Options(decimal, self._texts("options", read.get("date_formats")), **flags, replace=replace)

    def _replacement(self, given: object) -> tuple[UserPattern, str]:
        pair = self._texts("options.replace", given)
        if len(pair) != 2:  # noqa: PLR2004 - pattern and replacement
            raise self.refuse("options.replace", "each entry must be a pattern and its replacement")
        return self.pattern("options.replace", pair[0]), pair[1]

    def _check(self, given: object) -> Check:
        try:
            return read_check(self._text("checks", given))
        except ValueError as error:
            raise self.refuse("checks", str(error)) from None

    def _check_names(self, mapping: Mapping) -> None:
        names = {one.name for one in mapping.singles}
        names |= {f"{table.name}.{column.name}" for table in mapping.tables for column in table.columns}
        for check in mapping.checks:
            if unknown := next((name for name in check.names if name not in names), None):
                raise self.refuse("checks", f"{check.text}: unknown field {unknown}")
        for one in mapping.fields:
            if one.near and one.near not in names:
                raise self.refuse(one.name, f"near: unknown field {one.near}")
        for kind, xml_names in _xml_names(mapping):
            if twice := next((name for name in xml_names if xml_names.count(name) > 1), None):
                raise self.refuse(kind, f"two elements are named {twice}")

    # Single values

    def pattern(self, where: str, text: str) -> UserPattern:
        if len(text) > MOST_PATTERN:
            raise self.refuse(where, f"a pattern can have at most {MOST_PATTERN} characters")
        return UserPattern(text)

    def _patterns(self, where: str, given: object) -> tuple[UserPattern, ...]:
        return tuple(self.pattern(where, one) for one in self._texts(where, given))

    def _labels(self, where: str, given: object) -> tuple[str, ...]:
        """Read the labels, which the file groups by language.

        The language names are only for people who read the file. All labels are tried on every document.
        """
        found = [label for labels in self._table(where, given).values() for label in self._texts(where, labels)]
        if any(not label.strip() for label in found):
            raise self.refuse(where, "a label is empty")
        return tuple(dict.fromkeys(found))

    def _texts(self, where: str, given: object) -> tuple[str, ...]:
        return tuple(self._text(where, one) for one in self._list(where, given))

    def _text(self, where: str, given: object) -> str:
        if not isinstance(given, str | int | float) or isinstance(given, bool) or not str(given):
            raise self.refuse(where, "text is required")
        return str(given)

    def _optional(self, where: str, given: object) -> str | None:
        return None if given is None else self._text(where, given)

    def _list(self, where: str, given: object) -> list[object]:
        if given is None:
            return []
        if isinstance(given, str):
            return [given]
        if not isinstance(given, list):
            raise self.refuse(where, "must be a list")
        return list(given)  # pyright: ignore[reportUnknownArgumentType]

    def _table(self, where: str, given: object) -> Settings:
        if given is None:
            return {}
        if not isinstance(given, dict):
            raise self.refuse(where, "must consist of keys and values")
        return {str(key): value for key, value in given.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]

    def _known(self, where: str, given: object, known: tuple[str, ...]) -> str | None:
        name = self._optional(where, given)
        if name is not None and name not in known:
            raise self.refuse(where, f"{name[:80]!r} is not one of {', '.join(known)}")
        return name

    def _flag(self, where: str, name: str, given: object) -> bool:
        if not isinstance(given, bool):
            raise self.refuse(where, f"{name} must be true or false")
        return given

    def _choice(self, where: str, choices: type[Choice], given: object) -> Choice:
        try:
            return choices(str(given))
        except ValueError:
            raise self.refuse(where, f"{str(given)[:80]!r} is not one of {', '.join(choices)}") from None

    def _type(self, where: str, given: object, also: str | None = None) -> str:
        known = [*FIELD_TYPES, *([also] if also else [])]
        if given not in known:
            raise self.refuse(where, f"unknown type {str(given)[:80]!r}; use one of {', '.join(known)}")
        return str(given)

    def _xml_name(self, where: str, given: object) -> str:
        name = self._text(where, given) if given is not None else ""
        if not _XML_NAME.fullmatch(name) or name.lower().startswith("xml"):
            raise self.refuse(where, f"{name[:80]!r} is not a valid name for an XML element")
        return name

    def _own_name(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise self.refuse(
                name[:80], "a name can contain only lower-case letters, digits and _, and must start with a letter"
            )

    def _only(self, where: str, read: Settings, known: set[str]) -> None:
        if unknown := sorted(read.keys() - known):
            raise self.refuse(where, f"unknown key {unknown[0][:80]!r}; allowed are {', '.join(sorted(known))}")


_FLAGS = ("remove_whitespace", "remove_accents", "lowercase")
PatternReader = Callable[[str, str], UserPattern]


def pattern_reader(file: str) -> PatternReader:
    """Return a function that reads patterns from this file. Its errors name the file and the field."""
    return _Reader(file).pattern


def check_size(mapping: Mapping, file: str) -> None:
    """Reject a mapping that is too large to be applied quickly."""
    labels = list(mapping.labels)
    for name, count, most in (
        ("fields", len(mapping.fields), MOST_FIELDS),
        ("columns", sum(len(table.columns) for table in mapping.tables), MOST_COLUMNS),
        ("labels", len(labels), MOST_LABELS),
        ("patterns", sum(1 for _ in mapping.patterns), MOST_PATTERNS),
        ("checks", len(mapping.checks), MOST_CHECKS),
        ("date formats", len(mapping.options.date_formats), MOST_DATE_FORMATS),
    ):
        if count > most:
            raise BadMapping(f"{file}: has {count:,} {name}; at most {most:,} are allowed")
    if long := next((one.name for one in mapping.fields if len(one.name) > MOST_NAME), None):
        raise BadMapping(f"{file}: {long[:60]!r} is longer than {MOST_NAME} characters")
    if long := next((label for label in labels if len(label) > MOST_LABEL), None):
        raise BadMapping(f"{file}: the label {long[:60]!r} is longer than {MOST_LABEL} characters")


def compile_patterns(mapping: Mapping, file: str) -> None:
    """Compile all patterns. Raises `BadMapping` if one is invalid. This can be very slow, so call it in the sandbox."""
    for where, pattern in mapping.patterns:
        try:
            _ = pattern.compiled
        except (re.error, RecursionError, OverflowError) as error:
            raise BadMapping(f"{file}: {where}: invalid pattern {pattern.text[:60]!r}: {error}") from None
    for pattern, new in mapping.options.replace:
        try:
            pattern.compiled.sub(new, "")
        except (re.error, IndexError) as error:
            raise BadMapping(f"{file}: options.replace: invalid replacement {new[:60]!r}: {error}") from None


def _xml_names(mapping: Mapping) -> Iterator[tuple[str, list[str]]]:
    yield "fields", [one.xml for one in mapping.fields]
    for table in mapping.tables:
        yield table.name, [column.xml for column in table.columns]
