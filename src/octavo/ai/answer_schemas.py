"""JSON Schemas of model answers: complete schemas for validation, and simplified schemas for providers.

If an answer is valid except that it is too long, it is shortened, because a second call would cost money.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel

from octavo.core.types import JSON

# The keywords that all providers support. Limits are stated in the prompt and enforced when the answer is parsed.
PLAIN_KEYWORDS = frozenset({"type", "properties", "required", "items", "enum", "anyOf", "additionalProperties"})

Schema = dict[str, Any]


@cache
def whole_schema(output: type[BaseModel]) -> Schema:
    """Return the JSON Schema of a Pydantic class, with all `$ref` references resolved."""
    schema = output.model_json_schema()
    definitions: Schema = schema.pop("$defs", {})
    return {name: _resolve(one, definitions) for name, one in schema.items()}


@cache
def plain_schema(output: type[BaseModel]) -> Schema:
    """Reduce the schema to the keywords in `PLAIN_KEYWORDS`, which every provider accepts."""
    return _strip(whole_schema(output))


def _resolve(node: JSON, definitions: Schema) -> JSON:
    if isinstance(node, list):
        return [_resolve(one, definitions) for one in node]
    if not isinstance(node, dict):
        return node
    if isinstance(reference := node.get("$ref"), str):
        return _resolve(definitions[reference.rpartition("/")[2]], definitions)
    return {name: _resolve(one, definitions) for name, one in node.items()}


def _strip(node: Schema) -> Schema:
    plain = {name: value for name, value in node.items() if name in PLAIN_KEYWORDS}
    if "properties" in plain:
        plain["properties"] = {name: _strip(one) for name, one in plain["properties"].items()}
    if "items" in plain:
        plain["items"] = _strip(plain["items"])
    if "anyOf" in plain:
        plain["anyOf"] = [_strip(one) for one in plain["anyOf"]]
    return plain


def fit_to_schema(value: JSON, schema: Schema) -> JSON:
    """Shorten texts and lists that exceed the limits of the schema, and clamp numbers to its range.

    Missing values and values of the wrong type are not changed, so that validation rejects them.
    """
    if "anyOf" in schema:
        return _fit_optional(value, schema)
    match value:
        case str():
            return clean_text(value).strip()[: schema.get("maxLength")]
        case list():
            fitted = [fit_to_schema(one, schema.get("items", {})) for one in value]
            return [one for one in fitted if one != ""][: schema.get("maxItems")]
        case dict():
            forms: Schema = schema.get("properties", {})
            return {name: fit_to_schema(one, forms.get(name, {})) for name, one in value.items()}
        case int() | float() if not isinstance(value, bool):
            return min(max(value, schema.get("minimum", value)), schema.get("maximum", value))
        case _:
            return value


def clean_text(text: str) -> str:
    """Remove NUL characters and replace lone surrogates, because the database cannot store them."""
    return text.replace("\x00", "").encode(errors="replace").decode()


def _fit_optional(value: JSON, schema: Schema) -> JSON:
    forms = [form for form in schema["anyOf"] if form.get("type") != "null"]
    fitted = fit_to_schema(value, forms[0]) if len(forms) == 1 else value
    return None if fitted == "" and len(forms) < len(schema["anyOf"]) else fitted
