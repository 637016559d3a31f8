"""The OpenAPI description can be read by people and by programs that generate clients."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from jsonschema_rs import validator_for

from octavo.core.settings import Settings
from octavo.core.types import JSON
from octavo.deliver.channels import Delivery, EventRecord, webhook_body
from octavo.deliver.messages import EVENT_TYPES, TEST, Message
from octavo.web.app import create_app
from octavo.web.http.openapi import event_name, nodes_of, operations_of, texts

REF = "#/components/schemas/"


@cache
def description() -> dict[str, Any]:
    return create_app(Settings(data_dir=Path("/nowhere"))).openapi()


def schemas() -> dict[str, Any]:
    return description()["components"]["schemas"]


def fields() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, schema in schemas().items():
        for field, one in schema.get("properties", {}).items():
            yield f"{name}.{field}", one


def has_simple_values(schema: dict[str, Any]) -> bool:
    """No objects: their fields have examples of their own."""
    inner = [one for one in nodes_of(schema) if "$ref" in one or one.get("type") == "object"]
    return not inner and any(one.get("type") not in {None, "null"} or "enum" in one for one in nodes_of(schema))


def with_types(schema: dict[str, Any]) -> dict[str, Any]:
    """With all types, where it refers to one: compiling them takes a while."""
    refers = any("$ref" in one for one in nodes_of(schema))
    return schema | {"components": {"schemas": schemas()}} if refers and "examples" in schema else schema


def test_every_reference_leads_somewhere() -> None:
    named = {one["$ref"] for one in nodes_of(description()) if isinstance(one.get("$ref"), str)}
    assert named <= {REF + name for name in schemas()}


def test_every_type_has_its_name_as_title() -> None:
    """Generators of clients name classes by it."""
    assert [name for name, one in schemas().items() if one["title"] != name] == []


def test_errors_are_described_once() -> None:
    answers = [answer for one in operations_of(description()) for answer in one["responses"].items()]
    refusals = [answer for status, answer in answers if status[0] in "45"]
    assert len(refusals) > 500
    for answer in refusals:
        assert answer["content"]["application/problem+json"]["schema"] == {"$ref": REF + "Problem"}
        assert answer["description"] != "Refused"
    problems = [one for one in nodes_of(description()) if one.get("title") == "Problem" and "properties" in one]
    assert len(problems) == 1


def test_every_field_has_a_description_and_an_example() -> None:
    assert [name for name, one in fields() if not one.get("description")] == []
    assert [name for name, one in fields() if has_simple_values(one) and "examples" not in one] == []


def test_every_parameter_has_a_description_and_an_example() -> None:
    for operation in operations_of(description()):
        for one in operation.get("parameters", ()):
            where = operation["operationId"], one["name"]
            assert one.get("description"), where
            assert one["schema"].get("examples") or one.get("example"), where


def test_examples_are_valid() -> None:
    wrong: list[object] = []
    for name, one in fields():
        if "examples" not in one:
            continue
        check = validator_for(with_types(one))
        wrong += [(name, example) for example in one.get("examples", ()) if not check.is_valid(example)]
    for operation in operations_of(description()):
        for one in operation.get("parameters", ()):
            check = validator_for(with_types(one["schema"]))
            wrong += [
                (operation["operationId"], one["name"], example)
                for example in one["schema"].get("examples", ())
                if not check.is_valid(example)
            ]
    assert wrong == []


def test_no_text_is_left_over() -> None:
    used = {name.rpartition(".")[2] for name, _ in fields()} | {name for name, _ in fields()}
    for operation in operations_of(description()):
        for body in operation.get("requestBody", {}).get("content", {}).values():
            used |= set(body["schema"].get("properties", {}))
    assert set(texts()["fields"]) - used == set()
    named = {
        one["name"].lower() for operation in operations_of(description()) for one in operation.get("parameters", ())
    }
    assert set(texts()["parameters"]) - named == set()
    assert set(texts()["tags"]) == {tag for one in operations_of(description()) for tag in one["tags"]}


def test_every_operation_has_a_name_of_verb_and_noun() -> None:
    names = [one["operationId"] for one in operations_of(description())]
    assert len(set(names)) == len(names)
    for name in names:
        assert re.fullmatch(r"[a-z]+(_[a-z0-9]+)+", name), name
        assert not name.endswith(("_get", "_post", "_put", "_patch", "_delete")), name
    assert {"list_documents", "get_document", "add_document", "edit_prompt", "retry_job"} <= set(names)


def test_every_operation_says_what_it_does() -> None:
    silent = [one["operationId"] for one in operations_of(description()) if not one.get("description")]
    assert silent == []


@pytest.mark.parametrize("event", [*EVENT_TYPES, TEST])
def test_webhooks_are_as_described(event: str) -> None:
    at = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)
    facts: dict[str, JSON] | None = {"amount": {"value": "1"}} if event == "document.completed" else None
    record = EventRecord(4711, at, "complete", UUID(int=1), UUID(int=2), "complete", {"attempt": 1}, facts)
    delivery = Delivery("evt_4711", event, record, Message("", "", None), UUID(int=3), "", None, at)
    post = description()["webhooks"][event]["post"]
    schema = post["requestBody"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": REF + event_name(event)}
    check = validator_for(schema | {"components": {"schemas": schemas()}})
    body = json.loads(webhook_body(delivery))
    assert check.is_valid(body)
    assert not check.is_valid(body | {"type": "something.else"})
    known = set(schemas()["WebhookData"]["properties"])
    assert set(body["data"]) <= known


def test_there_is_a_webhook_for_every_event_type() -> None:
    assert set(description()["webhooks"]) == {*EVENT_TYPES, TEST}
