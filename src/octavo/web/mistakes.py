"""What is wrong with a request, field by field, in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

# By the kinds that the checking library tells apart; what stands in braces is what it knows about them.
WORDS = {
    "missing": "it is missing",
    "extra_forbidden": "there is no such field",
    "json_invalid": "this is no JSON",
    "string_type": "this is no text",
    "string_too_long": "at most {max_length} characters are taken",
    "string_too_short": "at least {min_length} characters are needed",
    "string_pattern_mismatch": "it is not in the form that is wanted here, or has characters that are not taken",
    "too_long": "at most {max_length} are taken",
    "too_short": "at least {min_length} are needed",
    "list_type": "this is no list",
    "greater_than_equal": "it must be {ge} or more",
    "less_than_equal": "it must be {le} or less",
    "literal_error": "it must be {expected}",
    "enum": "it must be {expected}",
    "value_error": "{error}",
}
# By how their kinds begin.
BEGINNINGS = {
    "int_": "this is no whole number",
    "float_": "this is no number",
    "finite_number": "this is no number",
    "bool_": "this is neither true nor false",
    "uuid_": "this is no id",
    "date_": "this is no date, as 2026-11-15",
    "datetime_": "this is no time",
    "dict_": "this is no object with fields",
    "model_": "this is no object with fields",
    "dataclass_": "this is no object with fields",
    "string_": "this text cannot be used",
}
OTHERWISE = "this cannot be used"


def describe_mistakes(mistakes: Iterable[Mapping[str, Any]]) -> str:
    """All of them in one line; what was sent is not repeated."""
    return "; ".join(f"{_place(one)}: {_words(one)}" for one in mistakes) + "."


def _place(mistake: Mapping[str, Any]) -> str:
    """The name of the field, or where it came from when it has none."""
    first, *rest = mistake["loc"] or ("request",)
    named = [] if mistake["type"] == "json_invalid" else rest
    return ".".join(map(str, named or [first]))


def _words(mistake: Mapping[str, Any]) -> str:
    kind = str(mistake["type"])
    if kind in WORDS:
        return WORDS[kind].format_map(mistake.get("ctx") or {})
    return next((words for beginning, words in BEGINNINGS.items() if kind.startswith(beginning)), OTHERWISE)
