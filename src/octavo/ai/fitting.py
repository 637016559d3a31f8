"""Makes an answer fit where it is only too much: asking again for one concept too many would be paid for twice."""

from __future__ import annotations

from octavo.ai.schemas import Schema
from octavo.core.json import JSON


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
