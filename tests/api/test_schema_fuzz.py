"""The whole API keeps to its own description, whatever it is sent: no crash, no undeclared answer, no way past keys."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUntypedFunctionDecorator=false
# The library under use is typed only in part.

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from http.cookiejar import DefaultCookiePolicy
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
import requests
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import Flaky

from octavo.core.settings import Settings
from octavo.web.rooms.account.api import NewKeyRequest
from tests.support.connections import connect
from tests.support.conversions import invoice
from tests.support.passwords import PASSWORD
from tests.support.postgres import Server
from tests.support.processes import PATIENCE_SECONDS
from tests.support.web import WebProcess, running_web

if TYPE_CHECKING:
    from schemathesis import Case
    from schemathesis.core.failures import FailureGroup
    from schemathesis.generation.feedback import FeedbackSources
    from schemathesis.specs.openapi.schemas import OpenApiSchema

# A form has only texts: what is no text in a schema is one when it is sent.
HAS_ONLY_TEXTS = ["POST /api/v1/documents", "POST /api/v1/conversions"]

# The statuses with which a request that violates its description is refused.
REFUSED = ["400", "401", "403", "404", "405", "406", "409", "415", "422", "428", "429", "5xx"]
ACCEPTED = ["2xx", "401", "403", "404", "409", "429"]
# What a schema cannot say is still checked: whose cursor it is, whether a file is empty, which fields go together, and
# which characters are spaces.
CHECKED_FURTHER = {
    "422": [
        *("GET /api/v1/documents", "GET /api/v1/jobs", "GET /api/v1/admin/dead-letters", "GET /api/v1/events"),
        *("GET /api/v1/admin/users", "GET /api/v1/audit", "GET /api/v1/audit/csv"),
        "POST /api/v1/shares",  # whether it is a document or a collection
        "POST /api/v1/grants",  # whether it is a member or a group
        *("POST /api/v1/groups", "PATCH /api/v1/groups/{group}"),
        *("GET /api/v1/documents/{document}/chunks", "GET /api/v1/documents/{document}/events"),
        *("GET /api/v1/documents/{document}/pages", "GET /api/v1/documents/{document}/figures"),
        *("GET /api/v1/documents/{document}/connections", "GET /api/v1/documents/{document}/children"),
        *("POST /api/v1/documents", "POST /api/v1/documents/bulk", "PATCH /api/v1/documents/{document}"),
        "POST /api/v1/documents/bulk/download",  # whether there are ids or a filter
        "POST /api/v1/uploads",  # whether there is a model that could write the text
        *("POST /api/v1/documents/{document}/retry", "POST /api/v1/jobs/{job}/retry"),
        *("POST /api/v1/admin/dead-letters/{job}/requeue", "POST /api/v1/collections"),
        *("PATCH /api/v1/collections/{collection}", "PUT /api/v1/uploads/{upload}/content"),
        *("POST /api/v1/account", "PUT /api/v1/account/password", "DELETE /api/v1/keys/{key}"),
        *("POST /api/v1/session", "POST /api/v1/members"),
        *("POST /api/v1/webhooks", "PATCH /api/v1/webhooks/{webhook}", "GET /api/v1/webhooks/{webhook}/deliveries"),
        *(
            "GET /api/v1/uploads",
            "GET /api/v1/notifications",
            "GET /api/v1/analyses",
            "GET /api/v1/analyses/{analysis}/items",
        ),
        "POST /api/v1/analyses",  # whether there is a prompt to ask
        "GET /api/v1/search",  # whether there is a word in it
        *("POST /api/v1/ask", "GET /api/v1/threads"),  # whether a document matches the scope
        *("GET /api/v1/conversions", "POST /api/v1/conversions", "PATCH /api/v1/conversions/{conversion}"),
        *("POST /api/v1/mappings", "POST /api/v1/mappings/check"),  # whether the text is a mapping
        "PATCH /api/v1/documents/{document}/facts",  # whether a value is a date, an amount or a kind
        "POST /api/v1/views",  # whether a month exists
        *("POST /api/v1/sources", "PATCH /api/v1/sources/{source}"),  # whether the folder can be watched
        *("POST /api/v1/fields", "PATCH /api/v1/fields/{field}"),  # whether choices are allowed
        *("POST /api/v1/rules", "PATCH /api/v1/rules/{rule}"),  # whether the fields of the rule exist
        "POST /api/v1/rules/{rule}/undo",  # whether there is a run to undo
        "GET /api/v1/rules/{rule}/runs",
        *(
            "PUT /api/v1/models",
            "PUT /api/v1/models/{provider}",
        ),  # whether the provider is complete and its price known
        "POST /api/v1/models/{provider}/test",
        "POST /api/v1/documents/{document}/highlights",  # whether the text has this quote
        *("GET /api/v1/documents/{document}/highlights", "GET /api/v1/highlights"),
        "GET /api/v1/conversions/{conversion}/words",  # whether the file has this page
        "GET /api/v1/export",  # whether it is a place in an export
        *("POST /api/v1/import/documents", "POST /api/v1/import/records", "POST /api/v1/import/conversions"),
        *("POST /api/v1/documents/{document}/convert", "POST /api/v1/conversions/{conversion}/again"),  # the mapping
    ],
    "410": [  # whether the file of a conversion was deleted
        *("GET /api/v1/conversions/{conversion}/words", "GET /api/v1/conversions/{conversion}/download"),
        *("GET /api/v1/conversions/{conversion}/source", "GET /api/v1/conversions/{conversion}/pages/{number}.png"),
        "POST /api/v1/conversions/{conversion}/again",
    ],
    "415": ["POST /api/v1/conversions", "POST /api/v1/documents/{document}/convert"],
    "413": [  # a long text has even more bytes
        *("POST /api/v1/uploads", "POST /api/v1/documents", "POST /api/v1/mappings", "POST /api/v1/mappings/check"),
    ],
    "412": [  # whether the thing still has this ETag
        *("PATCH /api/v1/documents/{document}", "PATCH /api/v1/documents/{document}/facts"),
        *("PATCH /api/v1/highlights/{highlight}", "PATCH /api/v1/prompts/{prompt}"),
        *("PATCH /api/v1/conversions/{conversion}", "PATCH /api/v1/webhooks/{webhook}"),
        *("PATCH /api/v1/rules/{rule}", "PATCH /api/v1/sources/{source}"),
    ],
}


@cache
def describe() -> dict[str, Any]:
    from octavo.web.app import create_app

    return create_app(Settings(data_dir=Path("/nowhere"))).openapi()


def list_routes() -> list[str]:
    return [f"{method.upper()} {path}" for path, methods in describe()["paths"].items() for method in methods]


def rules() -> list[dict[str, Any]]:
    """One for all routes with the same checks: each rule is compared with the route several times per request."""
    routes: dict[str, list[str]] = defaultdict(list)
    for name in sorted({name for names in CHECKED_FURTHER.values() for name in names}):
        routes[json.dumps(checks_of(name))].append(name)
    return [{"include-name": names, "checks": json.loads(checks)} for checks, names in routes.items()]


def checks_of(name: str) -> dict[str, Any]:
    further = [status for status, names in CHECKED_FURTHER.items() if name in names]
    checks: dict[str, Any] = {"positive_data_acceptance": {"expected-statuses": ACCEPTED + further}}
    if name in HAS_ONLY_TEXTS:
        checks["negative_data_rejection"] = {"enabled": False}
    elif "413" in further:
        checks["negative_data_rejection"] = {"expected-statuses": [*REFUSED, "413"]}
    return checks


@cache
def load_schema(*, with_listed: bool = True) -> OpenApiSchema:
    """Loaded when a test needs it: every process of tests would spend seconds on it at its start."""
    import schemathesis

    return schemathesis.openapi.from_dict(
        describe(),
        config=schemathesis.Config.from_dict(
            {
                "seed": 1,
                # Every request brings the key, so that what is wrong with another one is never sent.
                "generation": {"deterministic": True, "database": "none", "with-security-parameters": False},
                "phases": {"coverage": {"enabled": with_listed}},
                "operations": rules(),
            }
        ),
    )


# About as many as there are routes.
PARTS = 128
CALM = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    derandomize=True,
    database=None,
)
# The kinds of listed cases that are always sent; of the others, every so many of a route.
DANGEROUS = {"incorrect_type", "string_above_max_length", "value_above_maximum", "array_above_max_items"}
EVERY = 6
TELL = b"""
    INSERT INTO notifications (id, owner_id, event_id, process_id, type, level, created_at)
    SELECT gen_random_uuid(), id, -%s, gen_random_uuid(), 'job.failed', 'error', now() FROM owners WHERE kind = 'local'
    RETURNING id"""


FOLDER = b"""
    INSERT INTO sources (id, owner_id, kind, name, address, every_seconds)
    SELECT %s, owner_id, 'folder', %s, %s, 60 FROM documents WHERE id = %s"""
READABLE = b"""
    UPDATE documents SET revision = 1, last_revision = 1, text_ready = true WHERE id = ANY (%s) RETURNING owner_id"""


@dataclass(frozen=True, slots=True)
class World:
    """A server, the key of its owner, and real things for ids to mean: what is made by chance exists nowhere."""

    web: WebProcess
    client: httpx.Client
    session: requests.Session
    kept: dict[str, str]
    numbers: Iterator[int]
    locked: set[str]

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": self.client.headers["authorization"]}

    def call(self, method: str, path: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
        answer = self.client.request(method, path, **more)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else {}

    def add(self) -> dict[str, str]:
        text = f"# Title {next(self.numbers)}\n\nSome text."
        made = self.call("POST", "/api/v1/documents", content=text, headers={"x-upload-filename": "a.md"})
        return {"document": made["document_id"], "upload": made["upload_id"], "job": made["process_id"]}

    def fresh(self, name: str, path: str) -> str:
        """Something that a change may use up."""
        makers: dict[str, Callable[[], str]] = {
            "document": lambda: self.trashed() if path.endswith("/restore") else self.add()["document"],
            "job": lambda: self.add()["job"],
            "upload": lambda: self.call("POST", "/api/v1/uploads", json={"filename": "a.md"})["upload_id"],
            "collection": self.collection,
            "key": lambda: self.call("POST", "/api/v1/keys", json={"name": "k", "scope": "read"})["id"],
            "user": self.member,
            "webhook": self.webhook,
            "notification": self.notification,
            "prompt": lambda: self.call("POST", "/api/v1/prompts", json={"title": "t", "content": "c"})["id"],
            "analysis": self.analysis,
            "conversion": self.conversion,
            "connection_id": self.connection,
            "name": lambda: "invoice_v1",
            "number": lambda: "1",
            "view": lambda: self.call("POST", "/api/v1/views", json={"name": f"View {next(self.numbers)}"})["id"],
            "batch": self.batch,
            "highlight": self.highlight,
            "delivery": lambda: str(uuid4()),
            "thread": self.thread,
            "change": self.change,
            "provider": lambda: "compatible",
            "source": self.source,
            "field": lambda: self.alone("fields", {"name": "Project", "type": "text"}),
            "invitation": lambda: self.alone("invitations", {"email": "eve@example.org"}),
            "session": lambda: str(uuid4()),  # a key has none
            "export": self.export,
            "group": lambda: self.alone("groups", {"name": "Auditors"}),
            "grant": self.grant,
            "share": lambda: self.alone("shares", {"document_id": self.kept["document"]}),
            "rule": lambda: self.alone("rules", {"name": "Bays", "when": {"kind": "x"}, "then": {"tags": ["bay"]}}),
        }
        return makers[name]()

    def alone(self, things: str, body: dict[str, Any]) -> str:
        """The only one: an owner may not have many."""
        for one in self.call("GET", f"/api/v1/{things}")["items"]:
            self.call("DELETE", f"/api/v1/{things}/{one['id']}")
        return self.call("POST", f"/api/v1/{things}", json=body)["id"]

    def export(self) -> str:
        """Only one may be in preparation."""
        made = self.call("GET", "/api/v1/exports")["items"]
        return made[0]["id"] if made else self.call("POST", "/api/v1/exports", json={})["id"]

    def grant(self) -> str:
        group = self.alone("groups", {"name": "Auditors"})
        return self.alone("grants", {"collection_id": self.collection(), "group_id": group})

    def source(self) -> str:
        """Put there by hand: a folder of this machine would be looked at."""
        made, document = uuid4(), self.add()["document"]
        with psycopg.connect(self.web.database_info, autocommit=True) as connection:
            connection.execute(FOLDER, [made, str(made), f"/nowhere/{made}", document])
        return str(made)

    def connection(self) -> str:
        """As comparing makes it, of two texts that can be read."""
        documents = [UUID(self.add()["document"]) for _ in range(2)]
        with psycopg.connect(self.web.database_info, autocommit=True) as connection:

            async def execute(statement: str, *values: object) -> None:
                connection.execute(statement.encode(), values)

            row = connection.execute(READABLE, [documents]).fetchone()
            assert row
            return str(asyncio.run(connect(execute, row[0], documents[0], documents[1])))

    def conversion(self) -> str:
        body, headers = invoice(f"A-{next(self.numbers)}").write(), {"x-upload-filename": "a.pdf"}
        return self.call("POST", "/api/v1/conversions", content=body, headers=headers)["id"]

    def batch(self) -> str:
        wanted = {"ids": [self.add()["document"]], "action": "convert", "edit": {"mapping": "invoice_v1"}}
        return self.call("POST", "/api/v1/documents/bulk", json=wanted)["batch_id"]

    def change(self) -> str:
        wanted = {"ids": [self.add()["document"]], "action": "edit", "edit": {"collection": "Quay"}}
        return self.call("POST", "/api/v1/documents/bulk", json=wanted)["undo_id"]

    def highlight(self) -> str:
        path = f"/api/v1/documents/{self.kept['document']}/highlights"
        return self.call("POST", path, json={"quote": "Some text"})["id"]

    def thread(self) -> str:
        assert self.client.post("/api/v1/ask", json={"question": "What is it?"}).is_success
        return self.call("GET", "/api/v1/threads")["items"][0]["id"]

    def analysis(self) -> str:
        return self.call("POST", "/api/v1/analyses", json={"document_id": self.kept["document"]})["id"]

    def trashed(self) -> str:
        document = self.add()["document"]
        self.call("DELETE", f"/api/v1/documents/{document}")
        return document

    def collection(self) -> str:
        name = f"Collection {next(self.numbers)}"
        return self.call("POST", "/api/v1/collections", json={"name": name})["items"][0]["id"]

    def member(self) -> str:
        self.client.post("/api/v1/members", json={"email": "bob@example.org"})
        return self.call("GET", "/api/v1/members")["items"][0]["user_id"]

    def webhook(self) -> str:
        """The only one: an owner may not have many."""
        for one in self.call("GET", "/api/v1/webhooks")["items"]:
            self.client.delete(f"/api/v1/webhooks/{one['id']}")
        return self.call("POST", "/api/v1/webhooks", json={"address": "https://example.org/hook"})["id"]

    def notification(self) -> str:
        """As a relay makes it."""
        with psycopg.connect(self.web.database_info, autocommit=True) as connection:
            row = connection.execute(TELL, [next(self.numbers)]).fetchone()
        assert row
        return str(row[0])

    def make_real(self, case: Case[Any]) -> None:
        """Let every second id be that of something that is there."""
        from schemathesis.core.parameters import ParameterLocation

        wrong = case.meta is None or case.meta.is_negative_at(ParameterLocation.PATH)
        if wrong or not case.path_parameters or next(self.numbers) % 2:
            return
        for name in case.path_parameters:
            reads = case.method == "GET" and name in self.kept
            case.path_parameters[name] = self.kept[name] if reads else self.fresh(name, case.path)


def one_connection() -> requests.Session:
    """Kept open for thousands of requests, each of which brings nothing of the ones before it."""
    session = requests.Session()
    session.trust_env = False
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    return session


@pytest.fixture(scope="module")
def world(newest_server: Server) -> Iterator[World]:
    """Visitors are not let in, so that who has no key is nobody."""
    many = 10**9
    calm = {"requests_per_minute": many, "requests_per_minute_anonymous": many, "concurrent_uploads": many}
    with (
        running_web(newest_server, anonymous=False, **calm) as web,
        httpx.Client(
            base_url=web.address,
            headers={"authorization": f"Bearer {web.machine_key()}"},
            limits=httpx.Limits(max_keepalive_connections=0),
            trust_env=False,
            verify=False,
        ) as client,
    ):
        client.post("/api/v1/account", json={"email": "bob@example.org", "password": PASSWORD}).raise_for_status()
        made = World(web, client, one_connection(), {}, count(), set())
        made.kept.update(made.add())
        web.process_documents()
        yield made
        assert "request crashed" not in web.log()


def check(case: Case[Any], world: World) -> None:
    world.make_real(case)
    choose_one_way(case)
    use_own_key(case, world)
    send_and_check(case, world)


def send_and_check(case: Case[Any], world: World) -> None:
    """Whether a route needs a key is tried with its first request that succeeds: that takes three more requests."""
    from schemathesis.specs.openapi.checks import ignored_auth

    route = case.operation.label
    answer = case.call_and_validate(
        base_url=world.web.address,
        headers=world.headers,
        session=world.session,
        timeout=PATIENCE_SECONDS,
        excluded_checks=[ignored_auth] if route in world.locked else [],
    )
    if 200 <= answer.status_code < 300 and is_valid(case):
        world.locked.add(route)


def is_valid(case: Case[Any]) -> bool:
    return case.meta is not None and case.meta.generation.mode.is_positive


def choose_one_way(case: Case[Any]) -> None:
    """A form, or a name beside raw bytes; where both are, the form is not read. And answers that have an end."""
    if case.media_type == "multipart/form-data":
        case.headers.pop("x-upload-filename", None)
    if case.path == "/api/v1/events" and case.query.get("format") in {None, "stream"}:
        case.query["format"] = "json"  # the other form has no end
    if case.path.startswith("/api/v1/models/") and isinstance(case.body, dict):
        case.body.pop("url", None)  # nobody on the internet is called


def use_own_key(case: Case[Any], world: World) -> None:
    """A key that was used before would repeat that answer."""
    from schemathesis.core.parameters import ParameterLocation

    wrong = case.meta is None or case.meta.is_negative_at(ParameterLocation.HEADER)
    if not wrong and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = f"{case.headers['Idempotency-Key'][:200]}{next(world.numbers)}"


def keep_to_description(route: str, world: World, examples: int, *, with_listed: bool) -> None:
    """Send cases made by chance, and if wanted the listed ones, which are mostly one per rule of each field.

    The cases are built when they run: those of all routes take ten seconds.
    """
    from schemathesis.pytest._test_builder import build_operation_test

    schema = load_schema(with_listed=with_listed)

    @settings(CALM, max_examples=examples)
    def send(case: Case[Any]) -> None:
        check(case, world)

    method, path = route.split()
    build_operation_test(
        config=schema.config,
        operation=schema[path][method],
        test_func=send,
        given_kwargs={},
        feedback=constants_of(schema),
    )()


def constants_of(schema: OpenApiSchema) -> FeedbackSources:
    from schemathesis.generation.feedback import FeedbackSources
    from schemathesis.python._constants.orchestrator import make_constants_value_source

    return FeedbackSources(constants_value_source=make_constants_value_source(schema))


def choose_listed(route: str) -> list[Case[Any]]:
    """At most one case of each kind: the dangerous ones, and others that differ from route to route."""
    from schemathesis.generation.meta import CoveragePhaseData, CoverageScenario

    assert {kind.value for kind in CoverageScenario} >= DANGEROUS
    listed: dict[str, list[Case[Any]]] = defaultdict(list)
    for case in list_cases(route):
        assert case.meta
        assert isinstance(case.meta.phase.data, CoveragePhaseData)
        listed[case.meta.phase.data.scenario.value].append(case)
    place = list_routes().index(route)
    others = sorted(listed.keys() - DANGEROUS)[place % EVERY :: EVERY]
    chosen = [*sorted(listed.keys() & DANGEROUS), *others]
    return [listed[kind][place % len(listed[kind])] for kind in chosen]


def list_cases(route: str) -> Iterable[Case[Any]]:
    from schemathesis.generation.drivers import CoverageGenerator
    from schemathesis.generation.overrides import Override

    schema, (method, path) = load_schema(with_listed=False), route.split()
    operation = schema[path][method]
    generation = schema.config.generation_for(operation=operation, phase="coverage")
    return CoverageGenerator(
        operation=operation,
        generation_modes=generation.modes,
        generation_config=generation,
        auth_storage=None,
        override=Override(),
        feedback=constants_of(schema),
    )


@pytest.mark.parametrize("part", range(PARTS))
def test_every_route_keeps_to_its_description(world: World, subtests: pytest.Subtests, part: int) -> None:
    for route in list_routes()[part::PARTS]:
        with subtests.test(route):
            for case in choose_listed(route):
                check(case, world)
            keep_to_description(route, world, 1, with_listed=False)


@pytest.mark.long
@pytest.mark.parametrize("part", range(PARTS))
def test_every_route_keeps_to_its_description_for_long(world: World, subtests: pytest.Subtests, part: int) -> None:
    for route in list_routes()[part::PARTS]:
        with subtests.test(route):
            keep_to_description(route, world, 300, with_listed=True)


def walk(world: World, walks: int, steps: int) -> None:
    """One route after the other, each with what the ones before answered.

    Not those that bring back what was deleted: that would be found where it should be gone.
    """
    from schemathesis.core.failures import FailureGroup

    found: list[FailureGroup] = []

    class Walk(load_schema(with_listed=False).exclude(path_regex="/(restore|bulk|undo)$").as_state_machine()):
        def before_call(self, case: Case[Any]) -> None:
            choose_one_way(case)
            use_own_key(case, world)
            # What was answered has a key's secret as `key` and its id as `id`; only the id names it in a path.
            if str(case.path_parameters.get("key", "")).startswith("octavo_"):
                case.path_parameters["key"] = world.fresh("key", case.path)

        def get_call_kwargs(self, case: Case[Any]) -> dict[str, Any]:
            del case
            return {
                "base_url": world.web.address,
                "headers": world.headers,
                "session": world.session,
                "timeout": PATIENCE_SECONDS,
            }

        def validate_response(self, *args: Any, **more: Any) -> None:  # noqa: ANN401
            try:
                super().validate_response(*args, **more)
            except FailureGroup as failures:
                found.append(failures)
                raise

    calm = settings(CALM, derandomize=False, phases=[Phase.generate], max_examples=10, stateful_step_count=steps)
    for number in range(walks):
        # What comes next depends on what the server answered, so that a way that begins alike may go on differently.
        with contextlib.suppress(Flaky):
            seed(number)(Walk).run(settings=calm)
    assert found == []


def test_routes_one_after_the_other_keep_to_their_descriptions(world: World) -> None:
    walk(world, 1, 6)


@pytest.mark.long
def test_routes_one_after_the_other_keep_to_their_descriptions_for_long(world: World) -> None:
    walk(world, 20, 10)


def test_a_number_without_fraction_counts_as_an_integer() -> None:
    with pytest.raises(ValueError, match="expires_in_days"):
        NewKeyRequest.model_validate({"name": "k", "expires_in_days": True})


def test_every_refusal_is_declared_as_a_problem() -> None:
    for path, operations in describe()["paths"].items():
        for method, operation in operations.items():
            for status, answer in operation["responses"].items():
                if status >= "400":
                    assert list(answer["content"]) == ["application/problem+json"], (method, path, status)
