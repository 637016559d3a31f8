"""The OpenAPI description of the API. FastAPI derives it from the routes, and this module adds the details that
programs need.

Each operation has an id such as `list_documents`, made from its method and path, so that it stays the same when a
function is renamed. All errors use one schema. Every field and parameter has a description and an example, which come
from the code or from `api_texts.toml`. The events that webhooks send are described as well.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any, cast

from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.routing import BaseRoute

from octavo import __version__
from octavo.deliver.messages import EVENT_TYPES, TEST
from octavo.web.http.parameters import Problem, problems

Schema = dict[str, Any]
PREFIX = "/api/v1"
REF = "#/components/schemas/"
VERBS = {"GET": "get", "POST": "add", "PATCH": "edit", "PUT": "set", "DELETE": "delete"}
METHODS = frozenset(method.lower() for method in VERBS)
# Path segments that are verbs. All others are nouns.
ACTIONS = frozenset(
    {
        *(
            "finalize",
            "restore",
            "retry",
            "convert",
            "confirm",
            "dismiss",
            "undo",
            "rebuild",
            "rerun",
            "stop",
            "cancel",
        ),
        *("check", "test", "read", "resolve", "requeue", "discard", "try", "prioritise", "run", "pause", "apply"),
        *("replay", "rotate", "resume", "merge", "rename", "share", "revoke"),
    }
)
# Operations whose method and path do not make a good name.
NAMES = {
    "POST /webhooks/{webhook}/deliveries/{delivery}/replay": "replay_delivery",
    "GET /healthz": "get_liveness",
    "GET /readyz": "get_readiness",
    "GET /events": "list_events",
    "GET /sources/{source}/failed": "list_failed_files",
    "POST /embeddings": "add_embeddings",
    "POST /mappings/check": "check_mapping",
    "GET /connections/weights": "get_connection_weights",
    "PUT /connections/weights": "set_connection_weights",
    "GET /connections/map": "get_connection_map",
    "POST /documents/bulk": "change_documents",
    "POST /documents/bulk/{change}/undo": "undo_change",
    "POST /documents/bulk/download": "download_documents",
    "GET /documents/{document}/find": "find_in_document",
    "POST /model-servers": "find_model_servers",
    "PUT /models": "set_model_settings",
    "GET /models": "get_model_settings",
    "PUT /models/{provider}": "set_model_provider",
    "DELETE /models/{provider}": "delete_model_provider",
    "POST /models/{provider}/test": "test_model_provider",
    "POST /documents/{document}/link": "add_document_link",
    "GET /documents/{document}/pages/{number}.png": "get_page_picture",
    "GET /documents/{document}/figures/{number}.png": "get_figure_picture",
    "GET /documents/{document}/diff": "compare_versions",
    "GET /documents/{document}/related": "list_related_documents",
    "GET /tags/similar": "list_similar_tags",
    "GET /search": "search_documents",
    "GET /export": "export_library",
    "POST /exports": "prepare_export",
    "GET /exports": "list_prepared_exports",
    "GET /exports/{export}": "show_prepared_export",
    "GET /exports/{export}/content": "download_prepared_export",
    "POST /import/known": "find_known_documents",
    "POST /import/documents": "restore_exported_document",
    "POST /import/records": "restore_exported_records",
    "POST /import/conversions": "restore_exported_conversion",
    "POST /ask": "ask_question",
    "POST /conversions/{conversion}/again": "repeat_conversion",
    "GET /conversions/{conversion}/pages/{number}.png": "get_conversion_page_picture",
    "GET /conversions/{conversion}/download": "download_conversion",
    "POST /account": "sign_up",
    "POST /session": "sign_in",
    "DELETE /session": "sign_out",
    "POST /session/owner": "switch_owner",
    "POST /notifications/read": "read_notifications",
    "PUT /account/password": "change_password",
}
DESCRIPTION = (
    "Add documents, follow their processing, search them, ask questions, compare them, analyse them with prompts and "
    "convert them. Errors are returned as problem details (RFC 9457) with a stable `code`."
)


# Names of operations -----------------------------------------------------------------------------------------------


def operation_id(route: APIRoute) -> str:
    """Return the name of an operation: a verb and a noun, such as `list_documents` or `retry_job`."""
    method = min(route.methods or {"GET"})
    path = route.path.removeprefix(PREFIX)
    if known := NAMES.get(f"{method} {path}"):
        return known
    words = list(_nouns(path)) or [route.name]
    if method == "POST" and len(words) > 1 and words[-1] in ACTIONS:
        return "_".join([words[-1], *words[:-1]])
    verb = "list" if method == "GET" and _is_list(route) else VERBS.get(method, "")
    if method == "POST":
        words[-1] = _singular(words[-1])
    return "_".join([verb, *words])


def _nouns(path: str) -> Iterator[str]:
    """Yield the words of a path. A word before a parameter is singular: `documents/{document}` is one document."""
    parts = [part for part in path.split("/") if part and part != "admin"]
    for part, following in pairwise([*parts, ""]):
        if not part.startswith("{"):
            word = part.replace("-", "_").replace(".", "_")
            yield _singular(word) if following.startswith("{") else word


def _singular(word: str) -> str:
    if word.endswith("analyses"):
        return word[:-2] + "is"
    if word.endswith("ches"):
        return word[:-2]
    return word.removesuffix("s")


def _is_list(route: APIRoute) -> bool:
    """Whether the route returns a page of items, according to its annotation, such as `Page[Document]`."""
    return "Page" in str(route.endpoint.__annotations__.get("return"))


# The whole description ---------------------------------------------------------------------------------------------


def describe_api(routes: Sequence[BaseRoute], extra: Iterable[type[BaseModel]]) -> Schema:
    """Build the OpenAPI description of these routes. `extra` contains types that routes refer to by name."""
    made = get_openapi(
        title="Octavo",
        version=__version__,
        description=DESCRIPTION,
        routes=routes,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        servers=[{"url": "/", "description": "This server"}],
    )
    schemas: dict[str, Schema] = made["components"]["schemas"]
    for model in (Problem, *extra):
        schemas.update(_with_parts(model))
    _shorten_names(made)
    schemas = made["components"]["schemas"]
    webhooks, events = describe_webhooks()
    schemas.update(events)
    for name, schema in schemas.items():
        schema["title"] = name  # generators name classes by it, and it must be unique
    made["webhooks"] = webhooks
    for operation in operations_of(made):
        _declare_refusals(operation)
    for methods in made["paths"].values():
        _declare_etags(methods)
    _add_texts(made)
    return made


def operations_of(description: Schema) -> Iterator[Schema]:
    for methods in description["paths"].values():
        yield from (operation for method, operation in methods.items() if method in METHODS)


def _with_parts(model: type[BaseModel]) -> dict[str, Schema]:
    made = model.model_json_schema(ref_template=REF + "{model}")
    return {**made.pop("$defs", {}), model.__name__: made}


def _shorten_names(description: Schema) -> None:
    """Shorten the schema names that contain a module path. FastAPI creates such names for types with the same class
    name.
    """
    schemas: dict[str, Schema] = description["components"]["schemas"]
    shorter = {name: _short_name(name) for name in schemas if "__" in name}
    description["components"]["schemas"] = {shorter.get(name, name): one for name, one in schemas.items()}
    for node in nodes_of(description):
        name = str(node.get("$ref", "")).removeprefix(REF)
        if name in shorter:
            node["$ref"] = REF + shorter[name]


def _short_name(name: str) -> str:
    *modules, last = name.split("__")
    kind = next((part for part in reversed(modules) if part not in {"api", "octavo", "web"}), "")
    return kind.title().replace("_", "") + last


def nodes_of(value: Any) -> Iterator[Schema]:  # noqa: ANN401 - any JSON
    """Yield all objects in a JSON value, the outermost first."""
    inner: list[Any] = []
    if isinstance(value, dict):
        found = cast("Schema", value)
        yield found
        inner = list(found.values())
    elif isinstance(value, list):
        inner = cast("list[Any]", value)
    for one in inner:
        yield from nodes_of(one)


def _declare_refusals(operation: Schema) -> None:
    """Add the error responses for unreadable bodies, and for the Idempotency-Key and If-Match headers."""
    taken = {one["name"].lower() for one in operation.get("parameters", ())}
    if "requestBody" in operation:
        taken.add("body")
    refusals = {"idempotency-key": (409, 422), "if-match": (412, 422), "body": (400, 422)}
    for name in taken & set(refusals):
        for status, answer in problems(*refusals[name]).items():
            operation["responses"].setdefault(str(status), answer)


def _declare_etags(methods: Schema) -> None:
    """Declare the ETag response header of a path if its PATCH operation accepts If-Match."""
    taken = [one["name"].lower() for one in methods.get("patch", {}).get("parameters", ())]
    if "if-match" not in taken:
        return
    for operation in (methods[name] for name in ("get", "patch") if name in methods):
        operation["responses"]["200"].setdefault("headers", {})["ETag"] = {
            "description": "The version of the editable values. Send it in If-Match when you edit them.",
            "schema": {"type": "string"},
        }


# Webhooks ----------------------------------------------------------------------------------------------------------


class WebhookData(BaseModel):
    """The event. `facts` is present only for `document.completed` and `document.matched`."""

    id: int | None
    at: str
    kind: str
    process_id: str
    document_id: str | None
    state_after: str | None
    detail: dict[str, Any]
    facts: dict[str, Any] | None = None


def describe_webhooks() -> tuple[dict[str, Schema], dict[str, Schema]]:
    """Return the requests that webhooks send, one for each event type, and the schemas of their bodies."""
    schemas = _with_parts(WebhookData) | {event_name(one): _event_schema(one) for one in (*EVENT_TYPES, TEST)}
    return {one: {"post": _webhook(one)} for one in (*EVENT_TYPES, TEST)}, schemas


def event_name(event: str) -> str:
    return "".join(part.title() for part in event.replace("_", ".").split(".")) + "Event"


def _event_schema(event: str) -> Schema:
    return {
        "title": event_name(event),
        "type": "object",
        "description": f"The body of the `{event}` webhook.",
        "required": ["type", "timestamp", "data"],
        "properties": {
            "type": {"const": event, "type": "string", "description": "The event type.", "examples": [event]},
            "timestamp": {
                "type": "string",
                "format": "date-time",
                "description": "When the event happened.",
                "examples": ["2026-11-15T09:30:00+00:00"],
            },
            "data": {"$ref": REF + "WebhookData", "description": "The event."},
        },
    }


def _webhook(event: str) -> Schema:
    headers = {
        "webhook-id": "Identifies the event. It is the same for every attempt.",
        "webhook-timestamp": "The time of this attempt, in seconds since 1970.",
        "webhook-signature": "One or more signatures as defined by Standard Webhooks, separated by spaces.",
    }
    return {
        "operationId": f"receive_{event.replace('.', '_')}",
        "summary": event.replace(".", " ").replace("_", " ").capitalize(),
        "description": "Sent to each recipient that uses the `webhook` channel and has this event type selected.",
        "tags": ["webhooks"],
        "parameters": [
            {"name": name, "in": "header", "required": True, "description": text, "schema": {"type": "string"}}
            for name, text in headers.items()
        ],
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": REF + event_name(event)}}},
        },
        "responses": {
            "2XX": {"description": "Accepted. After any other response, the delivery is retried or marked as failed."},
            "410": {"description": "The recipient is paused and gets no more events."},
        },
    }


# Descriptions and examples -----------------------------------------------------------------------------------------


@cache
def texts() -> Mapping[str, Any]:
    return tomllib.loads(files("octavo.web.http").joinpath("api_texts.toml").read_text())


def _add_texts(description: Schema) -> None:
    known, schemas = texts(), description["components"]["schemas"]
    for name, schema in schemas.items():
        for field, one in schema.get("properties", {}).items():
            _complete(one, known["fields"].get(f"{name}.{field}") or known["fields"].get(field), one, schemas)
    for operation in operations_of(description):
        for one in operation.get("parameters", ()):
            _complete(one, known["parameters"].get(one["name"].lower()), one["schema"], schemas)
        for body in operation.get("requestBody", {}).get("content", {}).values():
            for field, one in body["schema"].get("properties", {}).items():
                _complete(one, known["fields"].get(field), one, schemas)
    used = {tag for operation in operations_of(description) for tag in operation.get("tags", ())}
    description["tags"] = [{"name": name, "description": text} for name, text in known["tags"].items() if name in used]


def _complete(field: Schema, text: list[Any] | None, schema: Schema, schemas: Mapping[str, Schema]) -> None:
    """Add a description and an example to a field or parameter that lacks them.

    The example of a field with fixed choices is its default or the first choice.
    """
    if text is None:
        return
    field.setdefault("description", text[0])
    choices = list(_choices(schema, schemas))
    examples = choices[:1] if choices else text[1:2]
    if _is_array(schema):
        examples = [cast("Any", one) if isinstance(one, list) else [one] for one in examples]
    if examples and "examples" not in schema and "example" not in field:
        default = schema.get("default")
        schema["examples"] = [default] if default in choices else examples


def _is_array(schema: Schema) -> bool:
    return "array" in [one.get("type") for one in (schema, *schema.get("anyOf", ()))]


def _choices(schema: Schema, schemas: Mapping[str, Schema]) -> Iterator[Any]:
    """Yield the fixed values that a field can have."""
    for one in (schema, *schema.get("anyOf", ())):
        target = schemas.get(str(one.get("$ref", "")).removeprefix(REF), one)
        yield from target.get("enum", ())
