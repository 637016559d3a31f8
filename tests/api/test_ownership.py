"""Every route for every caller: an owner has only what is theirs, and who is refused changes nothing.

The table below is compared with the routes of the application, so that a new route is red until it is in it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import UUID, uuid4

import httpx
import pytest
import pytest_asyncio
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from octavo.core.errors import ErrorClass
from octavo.core.settings import Settings
from octavo.owners import make_sign_in_link
from octavo.storage import Bucket
from octavo.web.app import create_app
from octavo.web.rooms.library.bulk import NOT_POST
from tests.support.connections import connect
from tests.support.dumps import dump
from tests.support.engine import engine_on
from tests.support.passwords import PASSWORD, hash_fast
from tests.support.pdf import Pdf, Words
from tests.support.postgres import Server, open_folder
from tests.support.visitors import House, house_on, me, refused

pytestmark = pytest.mark.asyncio(loop_scope="module")

Needs = Literal["nothing", "read", "known", "write", "person", "key", "manage", "member", "admin", "whole"]
Body = Callable[[str], Any]
CALLERS = ("stranger", "visitor", "newcomer", "reader", "reading key", "revoked key", "limited reader")
OK = 0
# What each of them is answered about something that is the owner's. Where a route is about nothing in particular,
# everybody has their own of it: 404 is then what the owner is answered.
ANSWERS: dict[Needs, tuple[int, ...]] = {
    "nothing": (OK, OK, OK, OK, OK, 401, OK),
    "read": (404, 404, 404, OK, OK, 401, 404),
    "whole": (404, 404, 404, OK, OK, 401, 403),
    "known": (404, 404, 401, OK, OK, 401, 404),
    "write": (404, 404, 404, 403, 403, 401, 403),
    "person": (404, 403, 401, 404, 403, 401, 404),
    "key": (404, 403, 401, 404, 403, 401, 404),
    "manage": (404, 403, 401, 403, 403, 401, 403),
    "member": (404, 403, 401, 403, 403, 401, 403),
    "admin": (403, 403, 401, 403, 403, 401, 403),
}
CODES = {401: {"UNAUTHENTICATED"}, 403: {"NOT_ALLOWED", "FORBIDDEN"}, 404: {"NOT_FOUND"}}
FROM_ELSEWHERE: list[dict[str, str]] = [
    {"sec-fetch-site": "cross-site", "origin": "https://evil.example"},
    {"sec-fetch-site": "same-site"},
    {"origin": "https://evil.example"},
    {"origin": "null"},
]
SETTINGS: dict[str, Any] = {
    "requests_per_minute": 10**6,
    "requests_per_minute_anonymous": 10**6,
    "conversion_gateway_url": "https://convert.example.org",
}
MISSING = "00000000-0000-7000-8000-000000000000"
# What an installation keeps is compared once for each part of the routes: comparing takes longer than asking.
PARTS = 8
ANY_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Rule:
    """What a route needs, what the id in it is of, and what the owner is answered."""

    needs: Needs
    thing: str | None
    ok: int = 200
    body: Body | None = None
    headers: dict[str, str] = field(default_factory=dict[str, str])
    content: bytes | None = None
    query: str = ""


def many(**more: object) -> Body:
    return lambda thing: {"ids": [thing], **more}


def given(**more: object) -> Body:
    return lambda _thing: more


DELIVERED = """
    INSERT INTO deliveries (id, subscriber_id, job_id, attempt, event_id, process_id, type, status, seconds)
    SELECT %s, %s, process_id, 1, id, process_id, 'document.created', 'delivered', 0.1 FROM events
    ORDER BY id DESC LIMIT 1"""
RULES: dict[str, Rule] = {
    "POST /api/v1/uploads": Rule("write", None, 201, given(filename="a.txt")),
    "GET /api/v1/uploads": Rule("read", None),
    "PUT /api/v1/uploads/{upload}/content": Rule("write", "begun upload", content=b"other bytes"),
    "GET /api/v1/uploads/{upload}/content": Rule("read", "upload"),
    "POST /api/v1/uploads/{upload}/finalize": Rule("write", "received upload"),
    "GET /api/v1/export": Rule("read", None),
    "POST /api/v1/exports": Rule("write", None, 202, given()),
    "GET /api/v1/exports": Rule("read", None),
    "GET /api/v1/exports/{export}": Rule("read", "export"),
    # Its job was cancelled, so there is nothing to download.
    "GET /api/v1/exports/{export}/content": Rule("read", "export", 409),
    "POST /api/v1/import/known": Rule("write", None, body=given(documents=[])),
    # An empty record is refused, so that nothing has to be prepared here.
    "POST /api/v1/import/documents": Rule("write", None, 422, given(record={}), query=f"?import_id={MISSING}"),
    "POST /api/v1/import/records": Rule("write", None, body=given(verdicts=[])),
    "POST /api/v1/import/conversions": Rule("write", None, 422, given(id=MISSING)),
    "POST /api/v1/documents": Rule("write", None, 202, headers={"x-upload-filename": "a.txt"}, content=b"a document"),
    "GET /api/v1/embeddings": Rule("read", None),
    "POST /api/v1/embeddings": Rule("write", None, 202),
    "GET /api/v1/documents": Rule("read", None),
    "GET /api/v1/events": Rule("read", None, headers={"accept": "application/json"}),
    "POST /api/v1/documents/bulk": Rule("write", "document", body=many(action="delete")),
    "POST /api/v1/documents/bulk/{change}/undo": Rule("write", "change of many"),
    "POST /api/v1/documents/bulk/download": Rule("read", "document", body=many()),
    "GET /api/v1/documents/{document}": Rule("read", "document"),
    "PATCH /api/v1/documents/{document}": Rule("write", "document", body=given(title="T", tags=["t"], collection="c")),
    "DELETE /api/v1/documents/{document}": Rule("write", "document", 204),
    "POST /api/v1/documents/{document}/restore": Rule("write", "trashed document"),
    "POST /api/v1/documents/{document}/retry": Rule("write", "document"),
    "GET /api/v1/documents/{document}/chunks": Rule("read", "document"),
    "GET /api/v1/documents/{document}/facts": Rule("read", "document"),
    "PATCH /api/v1/documents/{document}/facts": Rule("write", "document", body=given(sender="Coolblue")),
    "GET /api/v1/documents/{document}/events": Rule("read", "document"),
    "GET /api/v1/documents/{document}/versions": Rule("read", "document"),
    "GET /api/v1/documents/{document}/children": Rule("read", "document"),
    "GET /api/v1/documents/{document}/diff": Rule("read", "second version"),
    "POST /api/v1/ask": Rule("read", None, body=given(question="What is it?")),
    "GET /api/v1/threads": Rule("read", None),
    "GET /api/v1/threads/{thread}": Rule("read", "thread"),
    "GET /api/v1/threads/{thread}/markdown": Rule("read", "thread"),
    "DELETE /api/v1/threads/{thread}": Rule("write", "thread", 204),
    "GET /api/v1/documents/{document}/markdown": Rule("read", "readable document"),
    "GET /api/v1/documents/{document}/pages/{number}.png": Rule("read", "pictured document"),
    "GET /api/v1/documents/{document}/pages": Rule("read", "document"),
    "GET /api/v1/documents/{document}/regions": Rule("read", "document", query="?page=1"),
    "GET /api/v1/documents/{document}/figures": Rule("read", "document"),
    "GET /api/v1/documents/{document}/figures/{number}.png": Rule("read", "document with a figure"),
    "GET /api/v1/documents/{document}/source": Rule("read", "document"),
    "GET /api/v1/documents/{document}/picture": Rule("read", "readable document", 409),
    "GET /api/v1/documents/{document}/export": Rule("read", "document"),
    # A download like the one above, only later: it needs no more than that.
    "POST /api/v1/documents/{document}/link": Rule("read", "document"),
    "GET /api/v1/documents/{document}/find": Rule("read", "document", query="?q=text"),
    "GET /api/v1/documents/{document}/position": Rule("read", "document"),
    # Everybody who reads has a place where they stopped.
    "PUT /api/v1/documents/{document}/position": Rule("read", "document", 204, given(start=5)),
    "GET /api/v1/documents/{document}/highlights": Rule("read", "document"),
    "POST /api/v1/documents/{document}/highlights": Rule("write", "quotable document", 201, given(quote="Some text")),
    "GET /api/v1/highlights": Rule("read", None, query="?q=text"),
    "PATCH /api/v1/highlights/{highlight}": Rule("write", "highlight", body=given(note="Asked")),
    "DELETE /api/v1/highlights/{highlight}": Rule("write", "highlight", 204),
    "GET /api/v1/views": Rule("read", None),
    "POST /api/v1/views": Rule("write", None, 201, given(name="Invoices", filter={"kind": "invoice"}, sort="-date")),
    "DELETE /api/v1/views/{view}": Rule("write", "view", 204),
    "GET /api/v1/sources": Rule("read", None),
    "POST /api/v1/sources": Rule("admin", None, 201, given(kind="folder", path="/usr/share", name="Shared")),
    "GET /api/v1/sources/{source}": Rule("read", "source"),
    "PATCH /api/v1/sources/{source}": Rule("admin", "folder of the machine", body=given(name="Renamed")),
    "DELETE /api/v1/sources/{source}": Rule("admin", "folder of the machine", 204),
    "GET /api/v1/sources/{source}/failed": Rule("read", "source"),
    "POST /api/v1/sources/{source}/run": Rule("write", "source"),
    "POST /api/v1/sources/{source}/pause": Rule("write", "source"),
    "POST /api/v1/sources/{source}/resume": Rule("write", "source"),
    "GET /api/v1/fields": Rule("read", None),
    "POST /api/v1/fields": Rule("write", None, 201, given(name="Project", type="text")),
    "PATCH /api/v1/fields/{field}": Rule("write", "field", body=given(name="Renamed")),
    "DELETE /api/v1/fields/{field}": Rule("write", "field", 204),
    "GET /api/v1/rules": Rule("read", None),
    "POST /api/v1/rules": Rule("write", None, 201, given(name="Bays", when={"text": "bay"}, then={"tags": ["bay"]})),
    "GET /api/v1/rules/{rule}": Rule("read", "rule"),
    "PATCH /api/v1/rules/{rule}": Rule("write", "rule", body=given(enabled=True)),
    "DELETE /api/v1/rules/{rule}": Rule("write", "rule", 204),
    "POST /api/v1/rules/{rule}/try": Rule("read", "rule"),
    "POST /api/v1/rules/{rule}/apply": Rule("write", "rule"),
    "POST /api/v1/rules/{rule}/undo": Rule("write", "applied rule"),
    "GET /api/v1/rules/{rule}/runs": Rule("read", "rule"),
    "GET /api/v1/collections": Rule("read", None),
    "POST /api/v1/collections": Rule("write", None, 201, given(name="New")),
    "PATCH /api/v1/collections/{collection}": Rule("write", "collection", 204, given(name="Renamed")),
    "DELETE /api/v1/collections/{collection}": Rule("write", "collection", 204),
    "GET /api/v1/tags": Rule("read", None),
    "GET /api/v1/tags/similar": Rule("read", None, query="?name=bogs"),
    "GET /api/v1/search": Rule("read", None, query="?q=bog&mode=text"),
    "GET /api/v1/documents/{document}/related": Rule("read", "document"),
    "GET /api/v1/documents/{document}/connections": Rule("read", "document"),
    "GET /api/v1/connections": Rule("read", None, query="?id=0000"),
    "POST /api/v1/connections/{connection_id}/confirm": Rule("write", "connection"),
    "POST /api/v1/connections/{connection_id}/dismiss": Rule("write", "connection"),
    "POST /api/v1/connections/{connection_id}/undo": Rule("write", "connection"),
    "GET /api/v1/connections/weights": Rule("read", None),
    "PUT /api/v1/connections/weights": Rule(
        "write", None, 200, given(semantic_similarity=1, contradiction_detection=2, thematic_bridge=3)
    ),
    "GET /api/v1/connections/map": Rule("read", None),
    "POST /api/v1/connections/rebuild": Rule("write", None, 202),
    "GET /api/v1/prompts": Rule("read", None),
    "POST /api/v1/prompts": Rule("write", None, 201, given(title="Money", content="How much?")),
    "GET /api/v1/prompts/{prompt}": Rule("read", "prompt"),
    "GET /api/v1/prompts/{prompt}/versions": Rule("read", "prompt"),
    "PATCH /api/v1/prompts/{prompt}": Rule("write", "prompt", body=given(active=False)),
    "DELETE /api/v1/prompts/{prompt}": Rule("write", "prompt", 204),
    "GET /api/v1/analyses": Rule("read", None),
    "POST /api/v1/analyses": Rule("write", "ready document", 202, lambda document: {"document_id": document}),
    "GET /api/v1/analyses/{analysis}": Rule("read", "analysis"),
    "DELETE /api/v1/analyses/{analysis}": Rule("write", "analysis", 204),
    "GET /api/v1/analyses/{analysis}/segments": Rule("read", "analysis"),
    "GET /api/v1/analyses/{analysis}/items": Rule("read", "analysis"),
    "GET /api/v1/analyses/{analysis}/results": Rule("read", "analysis"),
    "GET /api/v1/analyses/{analysis}/export": Rule("read", "analysis"),
    # Nothing of it was asked yet that could be asked anew.
    "PUT /api/v1/analyses/{analysis}/prompts": Rule("write", "analysis", 409, given()),
    "POST /api/v1/analyses/{analysis}/rerun": Rule("write", "analysis", 409),
    "POST /api/v1/analyses/{analysis}/cancel": Rule("write", "analysis"),
    "POST /api/v1/analyses/{analysis}/stop": Rule("write", "analysis"),
    "POST /api/v1/analyses/{analysis}/retry": Rule("write", "analysis"),
    "POST /api/v1/conversions": Rule("write", "pictured document", 202, lambda thing: {"document_id": thing}),
    "GET /api/v1/conversions": Rule("read", None),
    "GET /api/v1/training-samples": Rule("read", None),
    "GET /api/v1/model-checks": Rule("read", None),
    "GET /api/v1/conversions/{conversion}": Rule("read", "conversion"),
    "PATCH /api/v1/conversions/{conversion}": Rule(
        "write", "conversion", 409, given(values=[{"name": "total", "value": "1.00"}])
    ),
    "DELETE /api/v1/conversions/{conversion}": Rule("write", "conversion", 204),
    "POST /api/v1/conversions/{conversion}/again": Rule("write", "conversion", 202),
    "POST /api/v1/documents/{document}/convert": Rule("write", "pictured document", 202),
    "GET /api/v1/conversion-batches/{batch}": Rule("read", "batch"),
    "GET /api/v1/conversions/{conversion}/words": Rule("read", "conversion"),
    "GET /api/v1/conversions/{conversion}/revisions": Rule("read", "conversion"),
    "GET /api/v1/conversions/{conversion}/download": Rule("read", "conversion", 409),
    "GET /api/v1/conversions/{conversion}/source": Rule("read", "conversion"),
    "GET /api/v1/conversions/{conversion}/pages/{number}.png": Rule("read", "conversion"),
    "GET /api/v1/mappings": Rule("read", None),
    "POST /api/v1/mappings": Rule("write", None, 201, given(text="name: mine_v1\nextends: invoice_v1")),
    "POST /api/v1/mappings/check": Rule("write", None, 200, given(text="name: mine_v1\nextends: invoice_v1")),
    "GET /api/v1/mappings/{name}": Rule("read", "mapping"),
    "DELETE /api/v1/mappings/{name}": Rule("write", "mapping", 204),
    "GET /api/v1/mappings/{name}/schema": Rule("read", "mapping"),
    "GET /api/v1/jobs": Rule("read", None),
    "GET /api/v1/jobs/{job}": Rule("read", "job"),
    "POST /api/v1/jobs/{job}/cancel": Rule("write", "job"),
    "POST /api/v1/jobs/{job}/retry": Rule("write", "cancelled job"),
    "POST /api/v1/jobs/{job}/prioritise": Rule("write", "job"),
    "GET /api/v1/imports": Rule("read", None),
    "POST /api/v1/imports/pause": Rule("write", None),
    "POST /api/v1/imports/resume": Rule("write", None),
    "GET /api/v1/settings": Rule("read", None),
    "GET /api/v1/settings/budgets": Rule("whole", None),
    "PUT /api/v1/settings/budgets": Rule("admin", None, body=given(document=2.5)),
    "GET /api/v1/models": Rule("whole", None),
    "PUT /api/v1/models": Rule("admin", None, body=given(order=["local"])),
    "PUT /api/v1/models/{provider}": Rule(
        "admin", "provider of models", body=given(url="http://127.0.0.1:11434/v1", model="llama")
    ),
    "DELETE /api/v1/models/{provider}": Rule("admin", "provider of models", 204),
    "POST /api/v1/models/{provider}/test": Rule("admin", "provider of models", 422),
    "POST /api/v1/model-servers": Rule("admin", None),
    "GET /api/v1/documents/{document}/budget": Rule("read", "document"),
    "GET /api/v1/estimate": Rule("read", None, query="?words=100"),
    "GET /api/v1/documents/{document}/estimate": Rule("read", "document"),
    "PUT /api/v1/documents/{document}/budget": Rule("write", "document", body=given(usd=4)),
    "GET /api/v1/usage": Rule("whole", None),
    "POST /api/v1/account": Rule("nothing", None, 409, given(email="ada@example.org", password=PASSWORD)),
    "POST /api/v1/session": Rule("nothing", None, 401, given(email="ada@example.org", password="wrong")),
    "GET /api/v1/session": Rule("read", None),
    "PUT /api/v1/account/password": Rule("person", None, 422, given(password=PASSWORD, new_password="short")),
    "PATCH /api/v1/session": Rule("person", None, body=given(language="de")),
    "POST /api/v1/session/owner": Rule("person", "owner", body=lambda owner: {"owner_id": owner}),
    "GET /api/v1/keys": Rule("key", None),
    "POST /api/v1/keys": Rule("key", None, 201, given(name="k", scope="read")),
    "DELETE /api/v1/keys/{key}": Rule("key", "key", 204),
    "GET /api/v1/members": Rule("known", None),
    # Nobody: two owners with one member could not be told apart.
    "GET /api/v1/invitations": Rule("manage", None),
    "POST /api/v1/invitations": Rule("manage", None, 201, given(email="nobody@example.org")),
    "DELETE /api/v1/invitations/{invitation}": Rule("manage", "invitation", 204),
    "GET /api/v1/sessions": Rule("person", None),
    "DELETE /api/v1/sessions/{session}": Rule("person", "session", 204),
    "POST /api/v1/admin/reset-links": Rule("admin", None, 404, given(email="nobody@example.org")),
    "GET /api/v1/shares": Rule("member", None),
    "POST /api/v1/shares": Rule("member", "document", 201, lambda thing: {"document_id": thing}),
    "DELETE /api/v1/shares/{share}": Rule("member", "share", 204),
    "GET /api/v1/audit": Rule("manage", None),
    "GET /api/v1/audit/csv": Rule("manage", None),
    "POST /api/v1/members": Rule("manage", None, 404, given(email="nobody@example.org")),
    "PATCH /api/v1/members/{user}": Rule("manage", "member", body=given(role="member")),
    "DELETE /api/v1/members/{user}": Rule("manage", "member", 204),
    "GET /api/v1/groups": Rule("manage", None),
    "POST /api/v1/groups": Rule("manage", None, 201, given(name="Auditors")),
    "PATCH /api/v1/groups/{group}": Rule("manage", "group", body=given(name="Renamed")),
    "DELETE /api/v1/groups/{group}": Rule("manage", "group", 204),
    # The id stands for the group and for the person: no person has the id of a group.
    "PUT /api/v1/groups/{group}/members/{user}": Rule("manage", "group", 404),
    "DELETE /api/v1/groups/{group}/members/{user}": Rule("manage", "group", 404),
    "GET /api/v1/grants": Rule("manage", None),
    "POST /api/v1/grants": Rule("manage", None, 404, given(collection_id=MISSING, group_id=MISSING)),
    "DELETE /api/v1/grants/{grant}": Rule("manage", "grant", 204),
    "GET /api/v1/webhooks": Rule("known", None),
    "POST /api/v1/webhooks": Rule("member", None, 201, given(address="https://example.org/hook")),
    "GET /api/v1/webhooks/{webhook}": Rule("known", "webhook"),
    "PATCH /api/v1/webhooks/{webhook}": Rule("member", "webhook", body=given(active=False)),
    "DELETE /api/v1/webhooks/{webhook}": Rule("member", "webhook", 204),
    "POST /api/v1/webhooks/{webhook}/test": Rule("member", "webhook", 202),
    "GET /api/v1/webhooks/{webhook}/deliveries": Rule("known", "webhook"),
    "POST /api/v1/webhooks/{webhook}/deliveries/{delivery}/replay": Rule("member", "delivery", 202),
    "POST /api/v1/webhooks/{webhook}/rotate": Rule("member", "webhook"),
    "GET /api/v1/notifications": Rule("read", None),
    "POST /api/v1/notifications/read": Rule("write", None),
    "POST /api/v1/notifications/{notification}/read": Rule("write", "notification"),
    "POST /api/v1/notifications/{notification}/resolve": Rule("write", "notification"),
    "GET /api/v1/admin/dead-letters": Rule("admin", None),
    "POST /api/v1/admin/dead-letters/requeue": Rule("admin", "dead letter", body=many()),
    "POST /api/v1/admin/dead-letters/discard": Rule("admin", "dead letter", body=many()),
    "POST /api/v1/admin/dead-letters/{job}/requeue": Rule("admin", "dead letter"),
    "POST /api/v1/admin/dead-letters/{job}/discard": Rule("admin", "dead letter"),
    "GET /api/v1/admin/users": Rule("admin", None),
    "PATCH /api/v1/admin/users": Rule("admin", None, 404, given(email="nobody@example.org", language="de")),
    "GET /api/v1/admin/workers": Rule("admin", None),
    "GET /api/v1/admin/health": Rule("admin", None),
    "GET /api/v1/admin/activity": Rule("admin", None),
    "GET /api/v1/admin/circuits": Rule("admin", None),
    "POST /api/v1/admin/circuits/{name}/try": Rule("admin", "conversion service"),
}
# It ends the session that it is asked with, and is tried with sessions that may end: tests/api/owners.
ELSEWHERE = {"DELETE /api/v1/session"}
# Answered with 405, whoever asks.
NOBODYS = {f"{method} /api/v1/documents/bulk" for method in NOT_POST}


def routes_of(app: FastAPI) -> set[str]:
    found = iter_route_contexts(app.routes)
    return {f"{method} {one.path}" for one in found for method in one.methods or () if "/api/v1" in (one.path or "")}


@dataclass(slots=True)
class World:
    """An owner with all sorts of things, and everybody else."""

    house: House
    connection_info: str
    owner: httpx.AsyncClient
    machine: httpx.AsyncClient
    others: dict[str, httpx.AsyncClient]
    owner_id: str
    made: int = 0

    async def caller(self, name: str) -> httpx.AsyncClient:
        return self.others.get(name) or await self.house.browser()

    async def make(self, thing: str | None) -> str:
        makers: dict[str, Callable[[], Awaitable[str]]] = {
            "document": self.document,
            "trashed document": self.trashed_document,
            "readable document": self.readable_document,
            "pictured document": self.pictured_document,
            "document with a figure": self.document_with_a_figure,
            "second version": self.second_version,
            "begun upload": self.begun_upload,
            "received upload": self.received_upload,
            "upload": lambda: self.add("upload_id"),
            "job": lambda: self.add("process_id"),
            "cancelled job": self.cancelled_job,
            "dead letter": self.dead_letter,
            "ready document": self.ready_document,
            "prompt": self.prompt,
            "analysis": self.analysis,
            "export": self.export,
            "conversion": self.conversion,
            "batch": self.batch,
            "connection": self.connection,
            "mapping": self.mapping,
            "collection": lambda: self.post("/api/v1/collections", "items.0.id", name=f"Collection {self.number()}"),
            "quotable document": self.quotable_document,
            "highlight": self.highlight,
            "thread": self.thread,
            "view": lambda: self.post("/api/v1/views", "id", name=f"View {self.number()}"),
            "source": lambda: self.source(self.owner_id),
            "folder of the machine": self.folder_of_the_machine,
            "field": lambda: self.post("/api/v1/fields", "id", name=f"Field {self.number()}", type="text"),
            "rule": self.rule,
            "applied rule": self.applied_rule,
            "key": lambda: self.post("/api/v1/keys", "id", name="k", scope="read"),
            "member": self.member,
            "group": lambda: self.post("/api/v1/groups", "id", name=f"Group {self.number()}"),
            "grant": self.grant,
            "invitation": lambda: self.post("/api/v1/invitations", "id", email=f"invited{self.number()}@example.org"),
            "session": self.session,
            "share": self.share,
            "owner": self.other_owner,
            "webhook": self.webhook,
            "delivery": self.delivery,
            "notification": self.notification,
            "conversion service": self.conversion_service,
            "change of many": self.change_of_many,
            "provider of models": self.provider_of_models,
        }
        return await makers[thing]() if thing else ""

    def number(self) -> int:
        self.made += 1
        return self.made

    async def post(self, path: str, wanted: str, **body: object) -> str:
        answer = await self.owner.post(path, json=body)
        assert answer.is_success, answer.text
        found = answer.json()
        for name in wanted.split("."):
            found = found[int(name) if name.isdecimal() else name]
        return found

    async def add(self, wanted: str, body: bytes | None = None) -> str:
        content, headers = body or f"Text {self.number()}".encode(), {"x-upload-filename": "a.txt"}
        answer = await self.owner.post("/api/v1/documents", content=content, headers=headers)
        assert answer.status_code == 202, answer.text
        return answer.json()[wanted]

    async def document(self) -> str:
        return await self.add("document_id")

    async def trashed_document(self) -> str:
        document = await self.document()
        assert (await self.owner.delete(f"/api/v1/documents/{document}")).status_code == 204
        return document

    async def readable_document(self) -> str:
        document, bucket = await self.document(), self.bucket
        stored = await bucket.put(f"markdown/{document}", b"# Text")
        values = (stored.key, stored.bytes, bytes.fromhex(stored.sha256))
        await self.house.run("INSERT INTO objects (key, bytes, sha256) VALUES (%s, %s, %s)", *values)
        await self.house.run(
            "INSERT INTO artifacts (id, document_id, kind, key, content_type) VALUES (%s, %s, %s, %s, %s)",
            *(uuid4(), document, "markdown", stored.key, "text/markdown"),
        )
        return document

    async def document_with_a_figure(self) -> str:
        document = await self.pictured_document()
        await self.house.run(
            "INSERT INTO figures (document_id, revision, number, kind, char_start, page, box, caption, alternative) "
            "VALUES (%s, 0, 1, 'figure', 0, 1, '[60, 60, 300, 200]', '', '')",
            document,
        )
        return document

    async def ready_document(self) -> str:
        document = await self.document()
        await self.house.run("UPDATE documents SET text_ready = true, revision = 1 WHERE id = %s", document)
        return document

    async def quotable_document(self) -> str:
        document = await self.ready_document()
        await self.house.run(
            "INSERT INTO chunks (id, document_id, revision, index, content, char_start, char_end, word_count) "
            "VALUES (%s, %s, 1, 0, 'Some text.', 0, 10, 2)",
            *(uuid4(), document),
        )
        return document

    async def highlight(self) -> str:
        return await self.post(
            f"/api/v1/documents/{await self.quotable_document()}/highlights", "id", quote="Some text"
        )

    async def thread(self) -> str:
        asked = await self.owner.post("/api/v1/ask", json={"question": "What is it?"})
        return asked.text.partition('"thread_id": "')[2].partition('"')[0]

    async def provider_of_models(self) -> str:
        """None of the owner's: it is the installation's."""
        return "compatible"

    async def source(self, owner: str) -> str:
        """Only an administrator adds a folder, so it is put there by hand."""
        made, name = str(uuid4()), f"Folder {self.number()}"
        insert = (
            "INSERT INTO sources (id, owner_id, kind, name, address, every_seconds) VALUES (%s, %s, %s, %s, %s, 60)"
        )
        await self.house.run(insert, made, owner, "folder", name, f"/nowhere/{name}")
        return made

    async def folder_of_the_machine(self) -> str:
        return await self.source((await self.machine.get("/api/v1/session")).json()["owner_id"])

    async def rule(self, kind: str = "letter") -> str:
        body = {"when": {"kind": kind}, "then": {"tags": ["post"]}}
        return await self.post("/api/v1/rules", "id", name=f"Rule {self.number()}", **body)

    async def applied_rule(self) -> str:
        document, kind = await self.document(), f"kind{self.number()}"
        await self.house.run("UPDATE documents SET kind = %s WHERE id = %s", kind, document)
        rule = await self.rule(kind)
        assert (await self.owner.post(f"/api/v1/rules/{rule}/apply")).json()["documents"] == 1
        return rule

    async def conversion_service(self) -> str:
        return "conversion"

    async def prompt(self) -> str:
        return await self.post("/api/v1/prompts", "id", title="Money", content=f"How much is {self.number()}?")

    async def analysis(self) -> str:
        return await self.post("/api/v1/analyses", "id", document_id=await self.ready_document())

    async def export(self) -> str:
        """A cancelled export, because an account prepares only one at a time."""
        for one in (await self.owner.get("/api/v1/exports")).json()["items"]:
            await self.owner.post(f"/api/v1/jobs/{one['id']}/cancel")
        export = await self.post("/api/v1/exports", "id")
        assert (await self.owner.post(f"/api/v1/jobs/{export}/cancel")).is_success
        return export

    async def second_version(self) -> str:
        first, body = await self.document(), f"Text {self.number()}"
        return await self.post("/api/v1/documents", "document_id", text=body, version_of=first)

    async def pictured_document(self) -> str:
        return await self.add("document_id", Pdf([[Words(f"Text {self.number()}")]]).write())

    async def connection(self) -> str:
        documents = [UUID(await self.ready_document()) for _ in range(2)]
        return str(await connect(self.house.run, UUID(self.owner_id), documents[0], documents[1]))

    async def conversion(self) -> str:
        return await self.post("/api/v1/conversions", "id", document_id=await self.pictured_document())

    async def batch(self) -> str:
        ids = [await self.pictured_document()]
        return await self.post("/api/v1/documents/bulk", "batch_id", ids=ids, action="convert")

    async def change_of_many(self) -> str:
        ids = [await self.document()]
        edit = {"collection": f"Collection {self.number()}"}
        return await self.post("/api/v1/documents/bulk", "undo_id", ids=ids, action="edit", edit=edit)

    async def mapping(self) -> str:
        return await self.post("/api/v1/mappings", "name", text=f"name: own{self.number()}_v1\nextends: invoice_v1")

    async def begun_upload(self) -> str:
        return await self.post("/api/v1/uploads", "upload_id", filename="a.txt")

    async def received_upload(self) -> str:
        upload = await self.begun_upload()
        sent = await self.owner.put(f"/api/v1/uploads/{upload}/content", content=f"Text {self.number()}".encode())
        assert sent.status_code == 200
        return upload

    async def cancelled_job(self) -> str:
        job = await self.add("process_id")
        return await self.post(f"/api/v1/jobs/{job}/cancel", "id")

    async def dead_letter(self) -> str:
        with engine_on(self.connection_info) as engine:
            kind = engine.add_kind(f"kind{self.number()}", attempts=1)
            (job,) = engine.put(UUID(self.owner_id), kind)
            engine.fail(engine.claim_one(kinds=[kind]), ErrorClass.TRANSIENT)
        return str(job)

    async def member(self) -> str:
        email = f"member{self.number()}@example.org"
        await self.house.person(email)
        return await self.post("/api/v1/members", "user_id", email=email, role="reader")

    async def grant(self) -> str:
        collection, group = await self.make("collection"), await self.make("group")
        return await self.post("/api/v1/grants", "id", collection_id=collection, group_id=group)

    async def share(self) -> str:
        return await self.post("/api/v1/shares", "id", document_id=await self.document())

    async def session(self) -> str:
        """Another browser with which the owner is signed in."""
        email = (await me(self.owner))["email"]
        answer = await (await self.house.browser()).post("/api/v1/session", json={"email": email, "password": PASSWORD})
        assert answer.status_code == 200, answer.text
        return (await self.owner.get("/api/v1/sessions")).json()["items"][1]["id"]

    async def webhook(self) -> str:
        """The only one: an owner may not have many."""
        await self.house.run("DELETE FROM subscribers WHERE owner_id = %s", self.owner_id)
        return await self.post("/api/v1/webhooks", "id", address="https://example.org/hook")

    async def delivery(self) -> str:
        """With the id of its recipient, of an event that happened."""
        webhook = await self.webhook()
        await self.make("document")
        await self.house.run(DELIVERED, webhook, webhook)
        return webhook

    async def notification(self) -> str:
        made, event = uuid4(), self.number()
        await self.house.run(
            "INSERT INTO notifications (id, owner_id, event_id, process_id, type, level, created_at)"
            " VALUES (%s, %s, %s, gen_random_uuid(), 'job.failed', 'error', now())",
            *(made, self.owner_id, event),
        )
        return str(made)

    async def other_owner(self) -> str:
        other = await self.house.person(f"other{self.number()}@example.org")
        added = await other.post("/api/v1/members", json={"email": "ada@example.org", "role": "reader"})
        assert added.status_code == 201
        return (await me(other))["owner_id"]

    @property
    def bucket(self) -> Bucket:
        return self.house.app.state.services.bucket


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(newest_server: Server) -> AsyncGenerator[World]:
    with open_folder() as folder, newest_server.database() as info, pytest.MonkeyPatch.context() as patch:
        hash_fast(patch)
        async with house_on(info, folder, **SETTINGS) as house:
            yield await settle(house, info)


async def settle(house: House, info: str) -> World:
    owner, stranger, reader = [await house.person(f"{name}@example.org") for name in ("ada", "bob", "carol")]
    visitor, machine = await house.browser(), await house.browser()
    await me(visitor)
    await machine.post("/sign-in", data={"token": await make_sign_in_link(house.database)})
    owner_id = (await me(owner))["owner_id"]
    await owner.post("/api/v1/members", json={"email": "carol@example.org", "role": "reader"})
    await reader.post("/api/v1/session/owner", json={"owner_id": owner_id})
    assert (await me(reader))["role"] == "reader"
    keys = [(await owner.post("/api/v1/keys", json={"name": "k", "scope": "read"})).json() for _ in range(2)]
    assert (await owner.delete(f"/api/v1/keys/{keys[1]['id']}")).status_code == 204
    others = {"stranger": stranger, "visitor": visitor, "reader": reader}
    others["limited reader"] = await limited_reader(house, owner, owner_id)
    others |= {"reading key": await house.program(keys[0]["key"]), "revoked key": await house.program(keys[1]["key"])}
    return World(house, info, owner, machine, others, owner_id)


async def limited_reader(house: House, owner: httpx.AsyncClient, owner_id: str) -> httpx.AsyncClient:
    """A member who may read one collection, which has one document."""
    person = await house.person("dora@example.org")
    body = {"email": "dora@example.org", "role": "reader", "limited": True}
    user = (await owner.post("/api/v1/members", json=body)).json()["user_id"]
    await person.post("/api/v1/session/owner", json={"owner_id": owner_id})
    collection = (await owner.post("/api/v1/collections", json={"name": "Granted"})).json()["id"]
    added = await owner.post("/api/v1/documents", json={"text": "The granted text about bogs."})
    edit = {"collection": "Granted"}
    assert (await owner.patch(f"/api/v1/documents/{added.json()['document_id']}", json=edit)).status_code == 200
    granted = await owner.post("/api/v1/grants", json={"collection_id": collection, "user_id": user})
    assert granted.status_code == 201, granted.text
    assert (await me(person))["limited"]
    assert (await person.get("/api/v1/documents")).json()["items"][0]["collection"] == "Granted"
    return person


async def ask(client: httpx.AsyncClient, name: str, thing: str, **headers: str) -> httpx.Response:
    """Call a route about something."""
    method, _, path = name.partition(" ")
    rule = RULES[name]
    more: dict[str, Any] = {"json": rule.body(thing)} if rule.body else {"content": rule.content}
    path = re.sub(r"\{\w+\}", thing, path.replace("{number}", "1"))
    return await client.request(method, path + rule.query, headers={**rule.headers, **headers}, **more)


def owner_of(world: World, name: str) -> httpx.AsyncClient:
    return world.machine if RULES[name].needs == "admin" else world.owner


def answer_to(name: str, caller: str) -> int:
    rule = RULES[name]
    answer = ANSWERS[rule.needs][CALLERS.index(caller)]
    return rule.ok if answer == OK or (answer == 404 and rule.thing is None) else answer


def without_ids(answer: httpx.Response) -> tuple[int, str, dict[str, str]]:
    # What is left of the caller's own limit is less with each request.
    headers = {key: value for key, value in answer.headers.items() if key not in {"set-cookie", "ratelimit"}}
    return answer.status_code, ANY_ID.sub("<id>", answer.text), headers


# The table ---------------------------------------------------------------------------------------------------------


async def test_every_route_of_the_application_is_in_the_table() -> None:
    app = create_app(Settings(data_dir=Path("/nowhere")))
    assert routes_of(app) == set(RULES) | ELSEWHERE | NOBODYS


@pytest.mark.parametrize("name", RULES)
async def test_every_id_in_a_path_is_of_something(name: str) -> None:
    assert ("{" not in name) or RULES[name].thing


# Callers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(PARTS))
async def test_an_unauthorised_caller_is_refused_and_changes_nothing(world: World, part: int) -> None:
    names = list(RULES)[part::PARTS]
    things = {name: await world.make(RULES[name].thing) for name in names}
    for caller in CALLERS:
        # Whoever comes for the first time becomes a visitor, and nothing else.
        visits = {"owners", "sessions"} if caller == "newcomer" else set[str]()
        before = await dump(world.house)
        for name in names:
            await check_refusal(await world.caller(caller), caller, name, things[name])
        after = await dump(world.house)
        assert {table for table in after if after[table] != before.get(table, [])} <= visits, caller


async def check_refusal(client: httpx.AsyncClient, caller: str, name: str, thing: str) -> None:
    expected = answer_to(name, caller)
    if expected == RULES[name].ok:
        return
    answer = await ask(client, name, thing)
    assert answer.status_code == expected, (name, caller, answer.text)
    assert answer.json()["code"] in CODES[expected], (name, caller)
    refused(answer, expected, answer.json()["code"])


@pytest.mark.parametrize("name", RULES)
async def test_an_authorised_caller_gets_a_response(world: World, name: str) -> None:
    rule = RULES[name]
    allowed = [caller for caller in CALLERS if answer_to(name, caller) == rule.ok]
    for caller in allowed:
        answer = await ask(await world.caller(caller), name, await world.make(rule.thing))
        assert answer.status_code == rule.ok, (caller, answer.text)
    answer = await ask(owner_of(world, name), name, await world.make(rule.thing))
    assert answer.status_code == rule.ok, answer.text
    if name.endswith("/session/owner"):
        await world.post("/api/v1/session/owner", "owner_id", owner_id=world.owner_id)


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.thing and rule.needs != "admin"])
async def test_foreign_and_missing_are_answered_alike(world: World, name: str) -> None:
    thing = await world.make(RULES[name].thing)
    stranger = world.others["stranger"]
    foreign, missing = await ask(stranger, name, thing), await ask(stranger, name, MISSING)
    assert foreign.status_code == 404
    assert without_ids(foreign) == without_ids(missing)
    assert without_ids(await ask(world.owner, name, MISSING)) == without_ids(missing)


@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.needs == "admin" and rule.thing])
async def test_the_administrator_sees_missing_workers_and_failed_checks(world: World, name: str) -> None:
    refused(await ask(world.machine, name, MISSING), 404, "NOT_FOUND")
    refused(await ask(world.owner, name, await world.make("dead letter")), 403, "FORBIDDEN")


@pytest.mark.parametrize("part", range(PARTS))
async def test_another_site_cannot_use_the_owners_cookie(world: World, part: int) -> None:
    names = sorted(name for name in [*RULES, *ELSEWHERE] if not name.startswith("GET"))[part::PARTS]
    things = {name: await world.make(RULES[name].thing) for name in names if name in RULES}
    before = await dump(world.house)
    for name in names:
        for headers in FROM_ELSEWHERE:
            if name in RULES:
                answer = await ask(owner_of(world, name), name, things[name], **headers)
            else:
                answer = await world.owner.request(*name.split(), headers=headers)
            assert answer.status_code == 403, (name, headers)
            refused(answer, 403, "CROSS_SITE")
    assert await dump(world.house) == before


@pytest.mark.parametrize("part", range(PARTS))
async def test_what_is_everybodys_own_shows_and_changes_nothing_of_the_owner(world: World, part: int) -> None:
    await world.make("document")
    await world.make("collection")
    before = await dump(world.house)
    theirs = {row for rows in before.values() for row in rows if world.owner_id in row}
    secret = {one.group() for row in theirs for one in ANY_ID.finditer(row)}
    everybodys = [name for name, rule in RULES.items() if not rule.thing and rule.needs != "admin"]
    for name in everybodys[part::PARTS]:
        for caller in ("stranger", "visitor", "newcomer"):
            answer = await ask(await world.caller(caller), name, "")
            assert not [one for one in secret if one in answer.text], (name, caller)
    after = await dump(world.house)
    assert {row for rows in after.values() for row in rows if world.owner_id in row} == theirs


@pytest.mark.parametrize("part", range(PARTS))
async def test_a_limited_reader_is_shown_nothing_that_was_not_granted(world: World, part: int) -> None:
    things = {rule.thing for rule in RULES.values() if rule.thing and rule.needs != "admin"}
    # Not what signing in or inviting makes: there are limits on that.
    for thing in sorted(things - {"owner", "session", "invitation", "member"}):
        await world.make(thing)
    reader = world.others["limited reader"]
    (granted,) = (await reader.get("/api/v1/documents")).json()["items"]
    (person,) = (await reader.get("/api/v1/members")).json()["items"]
    (collection,) = (await reader.get("/api/v1/collections")).json()["items"]
    own = [granted["id"], person["user_id"], collection["id"]]
    theirs = [row for rows in (await dump(world.house)).values() for row in rows if world.owner_id in row]
    shown = {one.group() for row in theirs if any(ident in row for ident in own) for one in ANY_ID.finditer(row)}
    secret = {one.group() for row in theirs for one in ANY_ID.finditer(row)} - shown - {world.owner_id}
    assert len(secret) > 20
    names = [name for name, rule in RULES.items() if not rule.thing and rule.needs != "admin"]
    for name in names[part::PARTS]:
        answer = await ask(reader, name, "")
        assert not [one for one in secret if one in answer.text], (name, answer.text)


# Ids that are not in the path --------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["delete", "restore", "purge", "retry", "edit"])
async def test_one_foreign_document_among_many_stops_all(world: World, action: str) -> None:
    foreign = await world.make("document")
    stranger = world.others["stranger"]
    headers = {"x-upload-filename": "a.txt"}
    content = f"Text {world.number()}".encode()
    own = (await stranger.post("/api/v1/documents", content=content, headers=headers)).json()["document_id"]
    if action == "restore":
        await stranger.delete(f"/api/v1/documents/{own}")
    body: dict[str, Any] = {"action": action} | ({"edit": {"title": "T"}} if action == "edit" else {})
    before = await dump(world.house)
    answers = [
        await stranger.post("/api/v1/documents/bulk", json=body | {"ids": [own, other]}) for other in (foreign, MISSING)
    ]
    for answer in answers:
        refused(answer, 404, "NOT_FOUND")
    assert without_ids(answers[0]) == without_ids(answers[1])
    assert await dump(world.house) == before


async def test_a_list_cannot_contain_documents_of_others(world: World) -> None:
    document, stranger = await world.make("document"), world.others["stranger"]
    (job,) = (await world.owner.get("/api/v1/jobs", params={"document_id": document})).json()["items"]
    answer = await stranger.get("/api/v1/jobs", params={"document_id": document})
    assert answer.json()["items"] == []
    mine = await world.owner.get("/api/v1/jobs", params={"limit": 1})
    cursor = mine.json()["next_cursor"]
    assert cursor
    seen = await stranger.get("/api/v1/jobs", params={"cursor": cursor, "limit": 500})
    assert job["id"] not in seen.text
    assert world.owner_id not in seen.text


async def test_a_guessed_link_opens_nothing(world: World) -> None:
    before = await dump(world.house)
    answer = await world.others["stranger"].get("/objects/sources/x?expires=1&signature=x")
    refused(answer, 403, "LINK_REFUSED")
    assert await dump(world.house) == before


# Signed links ------------------------------------------------------------------------------------------------------


async def signed_link(world: World) -> str:
    document = await world.make("document")
    return await world.post(f"/api/v1/documents/{document}/link", "url")


def altered(url: str, **changes: str | None) -> str:
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query)) | changes
    return f"{parts.path}?{urlencode({name: value for name, value in query.items() if value is not None})}"


async def test_a_signed_link_downloads_without_a_cookie(world: World) -> None:
    answer = await (await world.house.browser()).get(await signed_link(world))
    assert answer.status_code == 200
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["content-security-policy"] == "sandbox"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.content.startswith(b"Text")


@pytest.mark.parametrize(
    "change",
    [
        {"expires": "9999999999"},
        {"expires": "-1"},
        {"expires": None},
        {"expires": "1e10"},
        {"expires": "\u0661\u0662"},
        {"filename": "evil.html"},
        {"filename": None},
        {"content_type": "text/html"},
        {"content_type": None},
        {"signature": None},
        {"signature": ""},
        {"signature": "A" * 43},
        {"signature": "\u00e4"},
    ],
    ids=str,
)
async def test_an_altered_link_is_refused(world: World, change: dict[str, str | None]) -> None:
    url = altered(await signed_link(world), **change)
    answer = await (await world.house.browser()).get(url)
    refused(answer, 403, "LINK_REFUSED")


async def test_a_link_to_one_file_does_not_open_another(world: World) -> None:
    first, second = await signed_link(world), await signed_link(world)
    crossed = f"{urlsplit(first).path}?{urlsplit(second).query}"
    browser = await world.house.browser()
    for url in (crossed, crossed.replace("/objects/", "/objects/x/../"), first.replace("/objects/", "/objects//")):
        refused(await browser.get(url), 403, "LINK_REFUSED")
    for method in ("POST", "PUT", "DELETE"):
        answer = await browser.request(method, first)
        assert answer.status_code == 405


@pytest.mark.parametrize(
    "key", ["../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", ".octavo/signing-key", "%00", "sources", ""]
)
async def test_no_path_leads_out_of_the_bucket(world: World, key: str) -> None:
    answer = await (await world.house.browser()).get(f"/objects/{key}?expires=9999999999&signature=x")
    assert answer.status_code in {403, 404}
    assert answer.json()["code"] in {"LINK_REFUSED", "NOT_FOUND"}


async def test_a_link_that_is_over_is_refused(world: World) -> None:
    key = (await world.house.rows("SELECT key FROM objects LIMIT 1") or [("sources/x",)])[0][0]
    url = await world.bucket.sign_get(
        key, now=datetime.now(UTC), seconds=-1, filename="a.txt", content_type="text/plain"
    )
    over = await (await world.house.browser()).get(url)
    wrong = await (await world.house.browser()).get(altered(url, signature="x"))
    assert refused(over, 403, "LINK_REFUSED") == refused(wrong, 403, "LINK_REFUSED")


async def test_a_link_to_a_purged_document_is_not_found(world: World) -> None:
    document = await world.make("document")
    url = await world.post(f"/api/v1/documents/{document}/link", "url")
    assert (await world.owner.delete(f"/api/v1/documents/{document}?purge=true")).status_code == 204
    answer = await (await world.house.browser()).get(url)
    assert answer.status_code == 404
