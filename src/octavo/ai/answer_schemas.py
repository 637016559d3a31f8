"""JSON Schemas of answers."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel

from octavo.core.types import JSON

# What all of the providers understand. The limits are told in the prompt, and hold when the answer is read.
PLAIN = frozenset({"type", "properties", "required", "items", "enum", "anyOf", "additionalProperties"})

Schema = dict[str, Any]


@cache
def whole_schema(output: type[BaseModel]) -> Schema:
    """Without references, each of which stands for a definition elsewhere."""
    schema = output.model_json_schema()
    definitions: Schema = schema.pop("$defs", {})
    return {name: _resolve(one, definitions) for name, one in schema.items()}


@cache
def plain_schema(output: type[BaseModel]) -> Schema:
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
    plain = {name: value for name, value in node.items() if name in PLAIN}
    if "properties" in plain:
        plain["properties"] = {name: _strip(one) for name, one in plain["properties"].items()}
    if "items" in plain:
        plain["items"] = _strip(plain["items"])
    if "anyOf" in plain:
        plain["anyOf"] = [_strip(one) for one in plain["anyOf"]]
    return plain


def fit(value: JSON, schema: Schema) -> JSON:
    """Cuts what is too long and too many, and moves numbers to their limits; what is missing or wrong stays so."""
    if "anyOf" in schema:
        return _fit_optional(value, schema)
    match value:
        case str():
            return clean(value).strip()[: schema.get("maxLength")]
        case list():
            fitted = [fit(one, schema.get("items", {})) for one in value]
            return [one for one in fitted if one != ""][: schema.get("maxItems")]
        case dict():
            forms: Schema = schema.get("properties", {})
            return {name: fit(one, forms.get(name, {})) for name, one in value.items()}
        case int() | float() if not isinstance(value, bool):
            return min(max(value, schema.get("minimum", value)), schema.get("maximum", value))
        case _:
            return value


def clean(text: str) -> str:
    """Without what a database cannot keep in a text: zeros, and halves of characters."""
    return text.replace("\x00", "").encode(errors="replace").decode()


def _fit_optional(value: JSON, schema: Schema) -> JSON:
    forms = [form for form in schema["anyOf"] if form.get("type") != "null"]
    fitted = fit(value, forms[0]) if len(forms) == 1 else value
    return None if fitted == "" and len(forms) < len(schema["anyOf"]) else fitted
