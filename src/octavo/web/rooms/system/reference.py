"""The page with the API reference, made from the OpenAPI description. It loads nothing from other servers."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from markupsafe import Markup, escape

from octavo.core.errors import OctavoError
from octavo.web.http.openapi import METHODS, REF
from octavo.web.shell.frame import common_values, templates

router = APIRouter(include_in_schema=False)
DEEPEST = 6
# Examples of values without an example, by type.
SIMPLE: Mapping[str, Any] = {"object": {}, "string": "text", "integer": 1, "number": 1.0, "boolean": True}
_CODE = re.compile(r"`([^`]+)`")
Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A field or parameter. `link` is the name of its type, if the type has a separate entry."""

    name: str
    place: str
    type: str
    link: str | None
    required: bool
    text: str


@dataclass(frozen=True, slots=True)
class Body:
    """A request or response body in one media type."""

    media_type: str
    type: str | None
    fields: list[Field]
    example: str


@dataclass(frozen=True, slots=True)
class Answer:
    status: str
    text: str
    bodies: list[Body]
    is_problem: bool


@dataclass(frozen=True, slots=True)
class Operation:
    id: str
    method: str
    path: str
    text: str
    parameters: list[Field]
    bodies: list[Body]
    answers: list[Answer]
    curl: str

    @property
    def title(self) -> str:
        return self.id.replace("_", " ").capitalize()

    @property
    def words(self) -> str:
        """The text that the page's filter field searches."""
        return f"{self.method} {self.path} {self.title} {self.id} {self.text}".lower()


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    text: str
    operations: list[Operation]


@dataclass(frozen=True, slots=True)
class Type:
    name: str
    text: str
    fields: list[Field]
    choices: list[str]


@dataclass(frozen=True, slots=True)
class Reference:
    """The contents of the page. `codes` are the error codes, by status."""

    groups: list[Group]
    events: list[Operation]
    types: list[Type]
    codes: dict[int, list[tuple[str, str]]]


@router.get("/api/docs")
async def api_docs(request: Request) -> Response:
    """Show the API reference. It is public, because it reveals nothing about this installation."""
    theme = common_values(request)["theme"]
    headers = {"cache-control": "private, max-age=300", "vary": "cookie"}
    page = await asyncio.to_thread(_page, request.app, theme)  # it takes seconds, once
    return Response(page, media_type="text/html", headers=headers)


@cache
def _page(app: FastAPI, theme: str | None) -> bytes:
    page = templates.get_template("reference.html")
    values = {
        "frame": None,
        "lang": "en",
        "theme": theme,
        "version": app.version,
        "reference": make_reference(app.openapi()),
    }
    return page.render(values | {"prose": prose}).encode()


def prose(text: str) -> Markup:
    """Convert a description to HTML: paragraphs, and inline code for text in backticks."""
    paragraphs = [" ".join(part.split()) for part in text.split("\n\n")]
    return Markup("").join(
        Markup("<p>") + Markup(_CODE.sub(r"<code>\1</code>", str(escape(part)))) + Markup("</p>")  # noqa: S704
        for part in paragraphs
        if part
    )


# From the description to the page ----------------------------------------------------------------------------------


def make_reference(description: Schema) -> Reference:
    types: Mapping[str, Schema] = description["components"]["schemas"]
    groups: dict[str, list[Operation]] = {tag["name"]: [] for tag in description["tags"]}
    for path, methods in description["paths"].items():
        for method, one in methods.items():
            if method in METHODS:
                groups[one["tags"][0]].append(_operation(method, path, one, types))
    texts = {tag["name"]: tag["description"] for tag in description["tags"]}
    return Reference(
        [Group(name, texts[name], found) for name, found in groups.items()],
        [_operation("post", name, one["post"], types) for name, one in description["webhooks"].items()],
        [_type(name, types[name]) for name in sorted(types)],
        error_codes(),
    )


def error_codes() -> dict[int, list[tuple[str, str]]]:
    """Return the code and the title of every known error, by status."""
    found: dict[int, dict[str, str]] = {}
    for error in _all_errors(OctavoError):
        title = (error.__doc__ or "").strip().splitlines()[0]
        found.setdefault(error.status, {}).setdefault(error.code, title)
    return {status: sorted(found[status].items()) for status in sorted(found)}


def _all_errors(base: type[OctavoError]) -> Iterator[type[OctavoError]]:
    yield base
    for one in base.__subclasses__():
        yield from _all_errors(one)


def _operation(method: str, path: str, one: Schema, types: Mapping[str, Schema]) -> Operation:
    bodies = [_body(media, body, types) for media, body in one.get("requestBody", {}).get("content", {}).items()]
    answers = [_answer(status, answer, types) for status, answer in sorted(one["responses"].items())]
    parameters = [
        _field(
            given["name"],
            given["schema"],
            given["description"],
            required=given.get("required", False),
            place=given["in"],
        )
        for given in one.get("parameters", ())
    ]
    curl = _curl(method.upper(), path, bodies)
    return Operation(
        one["operationId"], method.upper(), path, one.get("description", ""), parameters, bodies, answers, curl
    )


def _answer(status: str, answer: Schema, types: Mapping[str, Schema]) -> Answer:
    contents = answer.get("content", {})
    is_problem = "application/problem+json" in contents
    bodies = [] if is_problem else [_body(media, body, types) for media, body in contents.items()]
    name = HTTPStatus(int(status)).phrase if status.isdecimal() else ""
    text = answer["description"] if answer["description"] != "Successful Response" else name
    return Answer(status, text, bodies, is_problem)


def _body(media_type: str, body: Schema, types: Mapping[str, Schema]) -> Body:
    schema = body.get("schema", {})
    name = _name(schema)
    choices = schema.get("oneOf") or [schema]
    fields = [field for one in choices for field in _fields(_resolve(one, types))] if len(choices) == 1 else []
    example = example_of(schema, types)
    written = json.dumps(example, indent=2, ensure_ascii=False) if example is not None else ""
    shown = name if len(choices) == 1 else " or ".join(_name(one) or "" for one in choices)
    return Body(media_type, shown, fields, written if "json" in media_type else "")


def _type(name: str, schema: Schema) -> Type:
    choices = [str(one) for one in schema.get("enum", ())]
    return Type(name, schema.get("description", ""), list(_fields(schema)), choices)


def _fields(schema: Schema) -> Iterator[Field]:
    required = set(schema.get("required", ()))
    for name, one in schema.get("properties", {}).items():
        yield _field(name, one, one.get("description", ""), required=name in required)


def _field(name: str, schema: Schema, text: str, *, required: bool, place: str = "") -> Field:
    inner = next((one for one in _inner(schema) if _name(one)), None)
    return Field(name, place, describe_type(schema), _name(inner) if inner else None, required, text)


def _inner(schema: Schema) -> Iterator[Schema]:
    """Yield a schema and the inner schemas that determine its type."""
    yield schema
    for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _inner(one)
    if "items" in schema:
        yield from _inner(schema["items"])


def describe_type(schema: Schema) -> str:
    """Describe the type of a value in a few words, such as `list of Chunk` or `integer, 1 to 500`."""
    if name := _name(schema):
        return name
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(describe_type(one) for one in choices))
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(str(one) for one in schema["enum"])
    kind = str(schema.get("type", "any value"))
    if kind == "array":
        return f"list of {describe_type(schema.get('items', {}))}"
    return ", ".join([str(schema.get("format", kind)), *_limits(schema)])


def _limits(schema: Schema) -> Iterable[str]:
    if "minimum" in schema and "maximum" in schema:
        yield f"{schema['minimum']:,} to {schema['maximum']:,}"
    if "maxLength" in schema:
        yield f"at most {schema['maxLength']:,} characters"


def example_of(schema: Schema, types: Mapping[str, Schema], depth: int = 0) -> Any:  # noqa: ANN401 - any JSON
    """Return an example of a value: the example in its schema, or one made from the examples of its fields."""
    found = schema if schema.get("examples") else _resolve(schema, types)
    values = [*found.get("examples", ()), *found.get("enum", ()), *([found["const"]] if "const" in found else [])]
    if values:
        return values[0]
    if choices := found.get("anyOf") or found.get("oneOf"):
        return example_of(choices[0], types, depth)
    return _made_example(found, types, depth + 1) if depth < DEEPEST else None


def _made_example(schema: Schema, types: Mapping[str, Schema], depth: int) -> Any:  # noqa: ANN401 - any JSON
    if "properties" in schema:
        return {name: example_of(one, types, depth) for name, one in schema["properties"].items()}
    if schema.get("type") == "array":
        one = example_of(schema.get("items", {}), types, depth)
        return [] if one is None else [one]
    return SIMPLE.get(str(schema.get("type")))


def _resolve(schema: Schema, types: Mapping[str, Schema]) -> Schema:
    name = _name(schema)
    return types.get(name, schema) if name else schema


def _name(schema: Schema) -> str | None:
    ref = schema.get("$ref")
    return str(ref).removeprefix(REF) if ref else None


def _curl(method: str, path: str, bodies: list[Body]) -> str:
    """Return the curl command that sends this request."""
    lines = [f'curl -X {method} -H "Authorization: Bearer $OCTAVO_KEY"']
    body = next((one for one in bodies if one.example), None)
    if body:
        lines.append('-H "Content-Type: application/json"')
        lines.append("-d '" + json.dumps(json.loads(body.example), ensure_ascii=False).replace("'", "'\\''") + "'")
    elif bodies:
        lines.append("--data-binary @file.pdf")
    lines.append(f'"$OCTAVO_SERVER{path}"')
    return " \\\n     ".join(lines)
