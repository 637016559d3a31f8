"""Rules change documents that match conditions: they add tags, set values and send the documents to recipients.

Trying a rule changes nothing. Applying it changes documents in batches, like an action on many documents, and can be
undone for a week. Enabled rules run on each new document, one after the other; the first rule that sets a value wins. A
rule sends each document to a recipient only once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, timedelta
from typing import Any, TypeAlias
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from octavo.core.errors import BadInput, NotFound
from octavo.core.http import Page, make_cursor, read_cursor
from octavo.core.types import new_id
from octavo.database import Connection, Database, Row, fetch_rows, load_queries
from octavo.library.bulk import MOST_SELECTED, in_batches, undo_change
from octavo.library.changes import MOST_TAGS, UNSET, Edit, edit_documents
from octavo.library.collections import clean_label
from octavo.library.documents import like_pattern
from octavo.library.errors import NameTaken
from octavo.library.fields import check_values
from octavo.owners.audit import record
from octavo.records.automation import (
    AmountRange,
    RuleChange,
    RuleRetention,
    RuleRun,
    RuleThen,
    RuleTrial,
    RuleView,
    RuleWhen,
    ValueChange,
)

QUERIES = load_queries("rules")
# Called in the last transaction, with the run.
OnDone: TypeAlias = Callable[[Connection, RuleRun], Awaitable[object]]
# Starts the actions of a rule that do not change the document. Returns the problems.
OnMatch = Callable[[RuleView], Awaitable[list[str]]]
MOST_RULES = 200
SHOWN = 1000
MOST_TITLE = 500
# The maximum number of messages to recipients in one run.
MOST_DELIVERIES = 1000
EXPIRES = "expires_on"
TITLE_PARTS = ("title", "filename", "kind", "sender", "author", "date", "amount", "currency")
_PART = re.compile(r"\{(\w*)\}")
# Scripts without spaces between words.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
# Between the words of a phrase there can be line breaks and Markdown.
_BETWEEN = r"[\s*_~`]+"
# PostgreSQL refuses a backslash before a letter, and counts the vowel signs of many scripts as letters.
_ASCII_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]")


# Definitions --------------------------------------------------------------------------------------------------------


async def list_rules(connection: Connection, owner: UUID) -> list[RuleView]:
    """List the rules in the order in which they run."""
    return [_as_rule(row) for row in await fetch_rows(connection, QUERIES.list_rules, {"owner": owner})]


async def show_rule(connection: Connection, owner: UUID, rule: UUID) -> RuleView:
    for one in await list_rules(connection, owner):
        if one.id == rule:
            return one
    raise NotFound


async def add_rule(
    connection: Connection, owner: UUID, name: str, when: RuleWhen, then: RuleThen, *, enabled: bool
) -> RuleView:
    await connection.execute(QUERIES.lock_owner, {"owner": owner})
    if len(await list_rules(connection, owner)) >= MOST_RULES:
        raise BadInput(f"The limit is {MOST_RULES} rules.")
    await _check(connection, owner, when, then)
    made = new_id()
    values = {"id": made, "owner": owner, "name": clean_label(name, "rule"), "enabled": enabled}
    values |= {"conditions": _as_json(when), "actions": _as_json(then)}
    await _save(connection, QUERIES.insert_rule, values, name)
    await record(connection, owner, "rule.add", made)
    return await show_rule(connection, owner, made)


async def edit_rule(
    connection: Connection,
    owner: UUID,
    rule: UUID,
    *,
    name: str | None = None,
    when: RuleWhen | None = None,
    then: RuleThen | None = None,
    enabled: bool | None = None,
    position: int | None = None,
) -> RuleView:
    """Change a rule. Documents that it has already changed stay as they are."""
    await connection.execute(QUERIES.lock_owner, {"owner": owner})
    known = await show_rule(connection, owner, rule)
    await _check(connection, owner, when or known.when, then or known.then)
    values = {"id": rule, "owner": owner, "name": clean_label(name, "rule") if name else None, "enabled": enabled}
    values |= {"conditions": _as_json(when) if when else None, "actions": _as_json(then) if then else None}
    await _save(connection, QUERIES.edit_rule, values, name or known.name)
    if position is not None:
        others = [one.id for one in await list_rules(connection, owner) if one.id != rule]
        others.insert(position - 1, rule)
        await connection.execute(QUERIES.order_rules, {"owner": owner, "rules": others})
    change = "edit" if enabled is None else "enable" if enabled else "disable"
    await record(connection, owner, f"rule.{change}", rule)
    return await show_rule(connection, owner, rule)


async def delete_rule(connection: Connection, owner: UUID, rule: UUID) -> None:
    """Delete a rule and its log. The documents that it changed stay as they are."""
    if await (await connection.execute(QUERIES.delete_rule, {"owner": owner, "id": rule})).fetchone() is None:
        raise NotFound
    await record(connection, owner, "rule.delete", rule)


async def _save(connection: Connection, query: bytes, values: Row, name: str) -> None:
    try:
        async with connection.transaction():
            await connection.execute(query, values)
    except psycopg.errors.UniqueViolation:
        raise NameTaken(name) from None


async def _check(connection: Connection, owner: UUID, when: RuleWhen, then: RuleThen) -> None:
    if not _given(when):
        raise BadInput("when: at least one condition is required.")
    if not _given(then):
        raise BadInput("then: at least one action is required.")
    if when.text is not None and not re.search(r"\w", when.text):
        raise BadInput("when.text: must contain a letter or a digit.")
    await check_values(connection, owner, dict.fromkeys(when.field or {}))
    await check_values(connection, owner, then.fields or {})
    if unknown := set(_PART.findall(then.title or "")) - set(TITLE_PARTS):
        raise BadInput(f"then.title: {{{min(unknown)}}} is not one of {', '.join(TITLE_PARTS)}.")


def _given(part: RuleWhen | RuleThen) -> Row:
    return {name: value for name, value in asdict(part).items() if value not in (None, {}, [])}


def _as_json(part: RuleWhen | RuleThen) -> Jsonb:
    given = _given(part)
    return Jsonb(given | {"deliver": [str(one) for one in given["deliver"]]} if "deliver" in given else given)


def _as_rule(row: Row) -> RuleView:
    rest = dict(row)
    when, then = dict(rest.pop("conditions")), dict(rest.pop("actions"))
    amount, kept = when.pop("amount", None), then.pop("retention", None)
    recipients = [UUID(one) for one in then.pop("deliver", None) or ()]
    return RuleView(
        when=RuleWhen(**when, amount=AmountRange(**amount) if amount else None),
        then=RuleThen(**then, deliver=recipients or None, retention=RuleRetention(**kept) if kept else None),
        **rest,
    )


async def list_recipients(connection: Connection, owner: UUID, ids: Iterable[UUID] | None = None) -> list[Row]:
    """Return the account's recipients to which rules can send documents. If `ids` is given, returns only these."""
    values = {"owner": owner, "ids": None if ids is None else list(ids)}
    return await fetch_rows(connection, QUERIES.recipients, values)


def recipient_label(recipient: Row) -> str:
    return f"{recipient['channel']} {recipient['address']}"


async def check_recipients(connection: Connection, owner: UUID, recipients: Collection[UUID]) -> None:
    """Raise `BadInput` if a recipient does not exist, or is a member's own email address."""
    known = {row["id"] for row in await list_recipients(connection, owner, recipients)}
    if unknown := set(recipients) - known:
        raise BadInput(f"then.deliver: there is no recipient {min(unknown)}.")


# Matching -----------------------------------------------------------------------------------------------------------


async def find_matching(
    connection: Connection, owner: UUID, when: RuleWhen, documents: Sequence[UUID] | None = None
) -> list[Row]:
    """Return the documents that match all conditions, with their values. Raises `BadInput` if there are too many."""
    amount = when.amount or AmountRange()
    values: Row = {
        "owner": owner,
        "documents": list(documents) if documents is not None else None,
        "source": when.source,
        "kind": when.kind,
        "sender": like_pattern(when.sender) if when.sender else None,
        "tag": when.tag,
        "fields": Jsonb(when.field or {}),
        "amount_min": amount.min,
        "amount_max": amount.max,
        "currency": amount.currency,
        "phrase": when.text or "",
        "pattern": phrase_pattern(when.text) if when.text else None,
        "by_words": not _UNSPACED.search(when.text or ""),
        "most": MOST_SELECTED + 1,
    }
    rows = await fetch_rows(connection, QUERIES.matching, values, prepare=False)
    if len(rows) > MOST_SELECTED:
        raise BadInput(f"More than {MOST_SELECTED:,} documents match. Add a condition.")
    return rows


def phrase_pattern(text: str) -> str:
    """Return a PostgreSQL regular expression that finds a phrase as whole words, ignoring case and line breaks."""
    words = text.split()
    phrase = _BETWEEN.join(_ASCII_PUNCTUATION.sub(r"\\\g<0>", word) for word in words)
    before = "(?<![[:alnum:]])" if _is_spaced(words[0][0]) else ""
    after = "(?![[:alnum:]])" if _is_spaced(words[-1][-1]) else ""
    return f"{before}{phrase}{after}"


def _is_spaced(character: str) -> bool:
    return character.isalnum() and not _UNSPACED.match(character)


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """The changes that a rule makes to one document. `targets` are the values that it sets, such as `collection`.

    `blocked` are values that an earlier rule has set. `left_out` are tags beyond the maximum number of tags. `undated`
    is true if the document has no date from which its retention can be counted. `recipients` get a message about the
    document.
    """

    document: Row
    changes: tuple[ValueChange, ...]
    edit: Edit
    targets: frozenset[str]
    blocked: frozenset[str]
    left_out: tuple[str, ...]
    undated: bool = False
    recipients: tuple[Row, ...] = ()

    @property
    def warnings(self) -> list[str]:
        text = f"tags: the limit per document is {MOST_TAGS}. Not added: {', '.join(self.left_out)}."
        undated = ["retention: a document without a date is kept."] if self.undated else []
        return [*([text] if self.left_out else []), *undated]

    @property
    def shown_changes(self) -> list[ValueChange]:
        """All changes to show to the user, including the messages that would be sent to recipients."""
        sent = [ValueChange("deliver", None, recipient_label(one)) for one in self.recipients]
        return [*self.changes, *sent]


def plan_change(
    document: Row, then: RuleThen, claimed: Iterable[str] = (), settled: Collection[str] = ()
) -> PlannedChange:
    """Plan the changes that a rule makes to a document. Values in `claimed` and `settled` are not changed."""
    taken = frozenset(claimed)
    found = _wanted_values(document, then)
    wanted = {name: text for name, text in found.items() if text and name.lower() not in settled}
    free = {name: text for name, text in wanted.items() if name not in taken}
    differing = {name: text for name, text in free.items() if _value_of(document, name) != text}
    missing = [] if "tags" in settled else _missing_tags(document, then)
    room = max(0, MOST_TAGS - len(document["tags"]))
    tags = missing[:room]
    changes = [ValueChange(_shown(name), _value_of(document, name), text) for name, text in differing.items()]
    if tags:
        before = ", ".join(document["tags"]) or None
        changes.insert(0, ValueChange("tags", before, ", ".join([*document["tags"], *tags])))
    edit = Edit(
        title=differing.get("title", UNSET),
        collection=differing.get("collection", UNSET),
        added_tags=tags,
        custom={_shown(name): text for name, text in differing.items() if name.startswith(_FIELD)},
        expires_on=date.fromisoformat(differing[EXPIRES]) if EXPIRES in differing else UNSET,
    )
    blocked = frozenset(name for name, text in wanted.items() if name in taken and _value_of(document, name) != text)
    undated = then.retention is not None and expiry_of(document, then.retention) is None
    return PlannedChange(document, tuple(changes), edit, frozenset(free), blocked, tuple(missing[room:]), undated)


def expiry_of(document: Mapping[str, Any], retention: RuleRetention) -> date | None:
    """Return the day on which a document is moved to the trash. Returns None if it has no date to count from."""
    start = document["added_on"] if retention.after == "added" else document["document_date"]
    try:
        return start + timedelta(days=retention.days) if start else None
    except OverflowError:  # after the year 9999
        return None


def _missing_tags(document: Row, then: RuleThen) -> list[str]:
    known = {tag.lower() for tag in document["tags"]}
    labels = {label.lower(): label for label in (clean_label(tag, "tag") for tag in then.tags or ())}
    return [label for lower, label in labels.items() if lower not in known]


def settled_values(document: Row) -> frozenset[str]:
    """Return the names of the values of a document that rules must not change.

    In a new version of a document, these are the values that were set by a person or in the previous version. In other
    documents, rules can change all values, so the result is empty.
    """
    if not document["is_version"]:
        return frozenset()
    flags = {"collection": document["collection"], "title": document["has_title"], "tags": document["has_tags"]}
    flags[EXPIRES] = document[EXPIRES]
    return frozenset({name for name, given in flags.items() if given}.union(_FIELD + one for one in document["fields"]))


_FIELD = "field:"
# A placeholder for the title in `has_title`. No title contains it.
_MARK = "\0"


def _wanted_values(document: Row, then: RuleThen) -> dict[str, str]:
    fields = {f"{_FIELD}{name}": text for name, text in (then.fields or {}).items()}
    title = document["title"] if has_title(then.title or "", document) else fill_title(then.title or "", document)
    collection = " ".join((then.collection or "").split())
    expiry = expiry_of(document, then.retention) if then.retention else None
    return {"collection": collection, "title": title, EXPIRES: expiry.isoformat() if expiry else "", **fields}


def _value_of(document: Row, name: str) -> str | None:
    if name.startswith(_FIELD):
        return document["fields"].get(_shown(name).lower())
    return document[name]


def _shown(name: str) -> str:
    return name.removeprefix(_FIELD)


def fill_title(pattern: str, document: Mapping[str, Any]) -> str:
    """Replace the placeholders of a title pattern, such as `{date}`. Placeholders without a value are removed."""
    values = {name: document.get(name) for name in TITLE_PARTS} | {"date": document.get("document_date")}
    text = _PART.sub(lambda part: str(values.get(part[1]) or ""), pattern)
    return " ".join(text.split()).strip(" -,·")[:MOST_TITLE]


def has_title(pattern: str, document: Mapping[str, Any]) -> bool:
    """Whether a pattern with `{title}` was already applied to the title, so that it must not be applied again."""
    if "{title}" not in pattern:
        return False
    before, *rest = (re.escape(part) for part in fill_title(pattern, {**document, "title": _MARK}).split(_MARK))
    made = f"{before}(?P<title>.+){'(?P=title)'.join(rest)}" if rest else before
    return re.fullmatch(made, document["title"]) is not None


async def _normalised(connection: Connection, owner: UUID, then: RuleThen) -> RuleThen:
    """Convert field values and known tags in a rule's actions to the form in which they are stored.

    Fields that no longer exist are left out.
    """
    fields: dict[str, str] = {}
    for name, text in (then.fields or {}).items():
        try:
            checked = await check_values(connection, owner, {name: text})
        except BadInput:
            continue
        fields |= {checked.names[field]: value for field, value in checked.values.items() if value}
    named = [clean_label(tag, "tag") for tag in then.tags or ()]
    rows = await fetch_rows(connection, QUERIES.tag_spellings, {"owner": owner, "names": named})
    known = {row["name"].lower(): row["name"] for row in rows}
    return replace(then, fields=fields, tags=[known.get(tag.lower(), tag) for tag in named])


# Sending ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeliveryPlan:
    """The active recipients of a rule, and the documents that the rule has already sent to them.

    `problems` explains why the rule's other recipients get no documents.
    """

    recipients: Sequence[Row] = ()
    sent: frozenset[tuple[UUID, UUID]] = frozenset()
    problems: tuple[str, ...] = ()

    def complete(self, planned: PlannedChange) -> PlannedChange:
        """Return the planned change with the recipients to which the rule has not sent the document yet."""
        document = planned.document["id"]
        missing = tuple(one for one in self.recipients if (document, one["id"]) not in self.sent)
        return replace(planned, recipients=missing)


async def _plan_deliveries(connection: Connection, owner: UUID, rule: RuleView, documents: list[UUID]) -> DeliveryPlan:
    if not rule.then.deliver:
        return DeliveryPlan()
    found = await list_recipients(connection, owner, rule.then.deliver)
    problems = [f"deliver: {recipient_label(one)} is paused." for one in found if not one["active"]]
    if len(found) < len(set(rule.then.deliver)):
        problems.append("deliver: a recipient was deleted.")
    sent = await fetch_rows(connection, QUERIES.sent, {"rule": rule.id, "documents": documents})
    pairs = frozenset((row["document_id"], row["subscriber_id"]) for row in sent)
    return DeliveryPlan([one for one in found if one["active"]], pairs, tuple(problems))


async def _send(connection: Connection, rule: RuleView, planned: Sequence[PlannedChange]) -> int:
    """Write the events that the relay delivers to the recipients. Returns the number of messages.

    An event is written once for each document, rule and recipient, even if a run is repeated.
    """
    pairs = [(one.document["id"], recipient["id"]) for one in planned for recipient in one.recipients]
    if not pairs:
        return 0
    documents, subscribers = zip(*pairs, strict=True)
    values = {"rule": rule.id, "documents": list(documents), "subscribers": list(subscribers)}
    (row,) = await fetch_rows(connection, QUERIES.send, values)
    return row["number"]


# Planning -----------------------------------------------------------------------------------------------------------


async def _plan(
    connection: Connection, owner: UUID, rule: RuleView, documents: Sequence[UUID] | None = None
) -> tuple[list[PlannedChange], tuple[str, ...]]:
    """Plan the changes to all documents that match now. Also returns the problems with the rule's recipients."""
    then = await _normalised(connection, owner, rule.then)
    found = await find_matching(connection, owner, rule.when, documents)
    deliveries = await _plan_deliveries(connection, owner, rule, [one["id"] for one in found])
    return [deliveries.complete(plan_change(one, then)) for one in found], deliveries.problems


# Trying -------------------------------------------------------------------------------------------------------------


async def try_rule(connection: Connection, owner: UUID, rule: UUID) -> RuleTrial:
    """Return the changes that a rule would make, without making them."""
    known = await show_rule(connection, owner, rule)
    planned, problems = await _plan(connection, owner, known)
    changing = [one for one in planned if one.changes or one.recipients]
    problems += tuple(dict.fromkeys(text for one in planned if one.undated for text in one.warnings))
    conflicts = await _conflicts(connection, owner, known, changing[:SHOWN])
    shown = [_as_change(one, [*conflicts[one.document["id"]], *one.warnings]) for one in changing[:SHOWN]]
    return RuleTrial(shown, len(changing), problems=list(problems))


def _as_change(planned: PlannedChange, conflicts: list[str]) -> RuleChange:
    one = planned.document
    return RuleChange(one["id"], one["title"], one["filename"], planned.shown_changes, conflicts)


async def _conflicts(
    connection: Connection, owner: UUID, rule: RuleView, planned: Sequence[PlannedChange]
) -> dict[UUID, list[str]]:
    """Find other enabled rules that set at least one of the same fields in these documents to a different value.

    Returns messages by document.
    """
    found: dict[UUID, list[str]] = defaultdict(list)
    mine = {one.document["id"]: one for one in planned}
    for other in await list_rules(connection, owner):
        if not other.enabled or other.id == rule.id or not planned:
            continue
        then = await _normalised(connection, owner, other.then)
        order = "runs first" if other.position < rule.position else "runs later"
        for row in await find_matching(connection, owner, other.when, list(mine)):
            theirs, ours = _wanted_values(row, then), _wanted_values(row, rule.then)
            for name in sorted(mine[row["id"]].targets):
                if theirs.get(name) and theirs[name] != ours.get(name):
                    found[row["id"]].append(f"{other.name} ({order}) sets {_shown(name)} to {theirs[name]}.")
    return found


# Applying -----------------------------------------------------------------------------------------------------------


async def apply_rule(database: Database, owner: UUID, rule: UUID, *, on_done: OnDone | None = None) -> RuleRun:
    """Apply a rule to all documents that match now, in batches. Each batch is one transaction with its log entry.

    Raises `BadInput` if it would send too many messages.
    """
    run = new_id()
    async with database.transaction() as connection:
        known = await show_rule(connection, owner, rule)
        planned, _ = await _plan(connection, owner, known)
        if (number := sum(len(one.recipients) for one in planned)) > MOST_DELIVERIES:
            raise BadInput(f"It would send {number:,} messages. The limit is {MOST_DELIVERIES:,}. Add a condition.")
        found = [one.document["id"] for one in planned]
        await connection.execute(QUERIES.insert_run, {"id": run, "rule": rule, "automatic": False})
        await record(connection, owner, "rule.apply", rule)
    for batch in in_batches(found):
        async with database.transaction() as connection:
            await _apply_batch(connection, owner, known, batch, run)
    async with database.transaction() as connection:
        return await _done(connection, QUERIES.show_run, run, on_done)


async def _apply_batch(connection: Connection, owner: UUID, rule: RuleView, batch: Sequence[UUID], run: UUID) -> None:
    planned, problems = await _plan(connection, owner, rule, batch)
    await _run_planned(connection, owner, rule, planned, run, problems)


async def _run_planned(
    connection: Connection,
    owner: UUID,
    rule: RuleView,
    planned: Sequence[PlannedChange],
    run: UUID,
    conflicts: Iterable[str] = (),
) -> int:
    """Change documents, send them to recipients, and log both. Returns the number of changed documents.

    Documents with the same changes are changed together. A document that cannot be changed is skipped, and the reason
    is logged with the conflicts.
    """
    groups: dict[str, tuple[Edit, list[UUID]]] = {}
    for one in planned:
        if one.changes:
            groups.setdefault(repr(one.edit), (one.edit, []))[1].append(one.document["id"])
    changed = 0
    logged = dict.fromkeys([*conflicts, *(text for one in planned for text in one.warnings)])
    for edit, documents in groups.values():
        number, reasons = await _edit_group(connection, owner, documents, edit, run)
        changed += number
        logged |= dict.fromkeys(reasons)
    counts = {"documents": changed, "deliveries": await _send(connection, rule, planned)}
    await connection.execute(QUERIES.count_run, {"id": run, "conflicts": list(logged)} | counts)
    return changed


async def _edit_group(
    connection: Connection, owner: UUID, documents: Sequence[UUID], edit: Edit, run: UUID
) -> tuple[int, list[str]]:
    """Change documents together, or one by one if this fails. Returns the number of changed ones and the errors."""
    try:
        async with connection.transaction():
            return await edit_documents(connection, owner, documents, edit, change=run), []
    except (BadInput, NotFound) as error:
        if len(documents) == 1:
            return 0, [error.line]
    each = [await _edit_group(connection, owner, [one], edit, run) for one in documents]
    return sum(number for number, _ in each), [reason for _, reasons in each for reason in reasons]


async def run_enabled_rules(
    connection: Connection, owner: UUID, document: UUID, on_match: OnMatch | None = None
) -> int:
    """Run all enabled rules on one document, in the order of their positions.

    Returns the number of rules that changed the document. `on_match` is called for each rule that matches. The problems
    that it returns are logged.

    A value that a rule has set is not changed by later rules. In a new version of a document, rules only set values
    that are missing.
    """
    claimed: dict[str, str] = {}
    settled: frozenset[str] | None = None
    changed = 0
    for rule in await list_rules(connection, owner):
        found = await find_matching(connection, owner, rule.when, [document]) if rule.enabled else []
        if not found:
            continue
        settled = settled_values(found[0]) if settled is None else settled
        deliveries = await _plan_deliveries(connection, owner, rule, [document])
        then = await _normalised(connection, owner, rule.then)
        planned = deliveries.complete(plan_change(found[0], then, claimed, settled))
        conflicts = [f"{_shown(name)}: set by {claimed[name]}." for name in sorted(planned.blocked)]
        conflicts += [*deliveries.problems, *(await on_match(rule) if on_match else [])]
        claimed |= dict.fromkeys(planned.targets, rule.name)
        if planned.shown_changes or conflicts or planned.warnings:
            run = new_id()
            await connection.execute(QUERIES.insert_run, {"id": run, "rule": rule.id, "automatic": True})
            changed += bool(await _run_planned(connection, owner, rule, [planned], run, conflicts))
    return changed


async def has_enabled_rules(connection: Connection, owner: UUID) -> bool:
    row = await (await connection.execute(QUERIES.has_enabled, {"owner": owner})).fetchone()
    return bool(row and row[0])


# The log ------------------------------------------------------------------------------------------------------------


async def list_runs(
    connection: Connection, owner: UUID, rule: UUID, *, cursor: str | None = None, limit: int
) -> Page[RuleRun]:
    """Return the runs of a rule, newest first."""
    await show_rule(connection, owner, rule)
    after_at, after_id = read_cursor(cursor) if cursor else (None, None)
    values = {"owner": owner, "rule": rule, "after_at": after_at, "after_id": after_id, "most": limit + 1}
    runs = [RuleRun(**row) for row in await fetch_rows(connection, QUERIES.runs, values)]
    last = runs[limit - 1 : limit]
    return Page(runs[:limit], make_cursor(last[0].created_at, last[0].id) if len(runs) > limit else None)


async def undo_rule(
    database: Database, owner: UUID, rule: UUID, run: UUID | None = None, *, on_done: OnDone | None = None
) -> RuleRun:
    """Undo a run of a rule by restoring the earlier values of the documents.

    If `run` is None, the last run that has not been undone is undone. Messages that were sent cannot be undone. A
    document that was moved to the trash on its expiry date stays there.
    """
    async with database.connection() as connection:
        await show_rule(connection, owner, rule)
        rows = await fetch_rows(connection, QUERIES.run_to_undo, {"owner": owner, "rule": rule, "run": run})
    if not rows:
        raise BadInput("There is no run of this rule to undo.")
    if rows[0]["deliveries"] and not rows[0]["documents"]:
        raise BadInput("This run only sent messages, and messages cannot be undone.")
    try:
        await undo_change(database, owner, rows[0]["id"])
    except NotFound:
        raise BadInput("This run can no longer be undone. Runs can be undone for a week.") from None
    async with database.transaction() as connection:
        await record(connection, owner, "rule.undo", rule)
        return await _done(connection, QUERIES.mark_run_undone, rows[0]["id"], on_done)


async def _done(connection: Connection, query: bytes, run: UUID, on_done: OnDone | None) -> RuleRun:
    (row,) = await fetch_rows(connection, query, {"run": run})
    made = RuleRun(**row)
    if on_done:
        await on_done(connection, made)
    return made
