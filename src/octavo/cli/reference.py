"""Generates the reference pages of the documentation from the code. `make docs` runs it."""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import cleandoc
from pathlib import Path

from pydantic.fields import FieldInfo

from octavo.core.errors import OctavoError
from octavo.core.settings import Settings, variable_name

SETTINGS_HEAD = """# Settings

Each setting is an environment variable. You can also put settings into a file: `octavo.toml` in the working folder, or
the file that `OCTAVO_CONFIG` names. In the file, write the names in lower case and without `OCTAVO_`. Environment
variables take precedence over the file. Unknown names are refused.

| Variable | Default | Meaning |
|---|---|---|
"""
ERRORS_HEAD = """# Error codes

The API returns errors as `application/problem+json`, with one of these codes in the `code` field. Codes do not change,
so programs can rely on them.

| Code | HTTP status | Retried automatically | Message |
|---|---|---|---|
"""
CHOREOGRAPHY_HEAD = """# Which job follows which event

Each event enqueues one job, in the same transaction. In the diagram, an arrow leads from the person or job kind that
causes the event to the job kind that the event starts. All other jobs are enqueued by schedules (times in UTC) or by
`octavo jobs add`. This page is generated from the `CHOREOGRAPHY` table in `octavo.choreography`.

```mermaid
flowchart LR
{arrows}
```

| Event | Job kind | Priority | Lane | When |
|---|---|---|---|---|
{rows}
"""
# The modules with documented errors. Other errors are internal, or share the code of one of these.
ERRORS = (
    "octavo.core.errors",
    "octavo.intake.errors",
    "octavo.fetch.urls",
    "octavo.convert.errors",
    "octavo.analyse.errors",
    "octavo.search.query",
    "octavo.deliver.channels",
    "octavo.deliver.subscribers",
    "octavo.jobs.views",
    "octavo.jobs.queue",
    "octavo.ai.model_checks",
    "octavo.ai.model_settings",
    "octavo.describe.embedding",
    "octavo.library.errors",
    "octavo.library.shares",
    "octavo.owners.callers",
    "octavo.storage.writing",
    "octavo.web.context.idempotency",
    "octavo.web.http.downloads",
    "octavo.web.live",
    "octavo.web.http.multipart",
    "octavo.web.http.parameters",
    "octavo.web.http.problems",
)
# Defaults that depend on the user or on another setting.
DEFAULTS = {
    "data_dir": "`~/.local/share/octavo`; for root `/var/lib/octavo`",
    "anonymous": "depends on OCTAVO_HOST",
    "sign_up": "depends on OCTAVO_HOST",
}


def settings_page() -> str:
    rows = [
        f"| `{variable_name(name)}` | {_default(name, field)} | {_cell(field.description or '')} |"
        for name, field in Settings.model_fields.items()
    ]
    return SETTINGS_HEAD + "\n".join(rows) + "\n"


def errors_page() -> str:
    from octavo.core.errors import RETRY_RULES

    for module in ERRORS:
        import_module(module)
    rows: dict[str, str] = {}
    for error in _all_errors(OctavoError):
        again = "yes" if RETRY_RULES[error.error_class] else "no"
        rows.setdefault(error.code, f"| `{error.code}` | {error.status} | {again} | {_title(error)} |")
    return ERRORS_HEAD + "\n".join(rows[code] for code in sorted(rows)) + "\n"


def choreography_page() -> str:
    from octavo.choreography import CHOREOGRAPHY
    from octavo.pipeline import known_schedules

    rows = sorted(CHOREOGRAPHY.items(), key=lambda row: row[1].kind)
    arrows = [
        f'    {_node(source)} -->|"{cause}"| {_node(follows.kind)}'
        for cause, follows in rows
        for source in follows.sources
    ]
    arrows += [f'    {_node("a schedule")} -->|"{one.cron}"| {_node(one.kind)}' for one in known_schedules()]
    table = [
        f"| {cause} | `{one.kind}` | {one.priority} | {one.lane or 'of its document'} | {one.when} |"
        for cause, one in rows
    ]
    return CHOREOGRAPHY_HEAD.format(arrows="\n".join(arrows), rows="\n".join(table))


def _node(name: str) -> str:
    return f'{name.replace(" ", "_")}["{name}"]'


PAGES = {"settings.md": settings_page, "errors.md": errors_page, "what-follows-what.md": choreography_page}


def _cell(text: str) -> str:
    """Escape a text for a cell of a Markdown table. A vertical bar would end the cell, even inside code."""
    return text.replace("|", "\\|")


def _default(name: str, field: FieldInfo) -> str:
    if name in DEFAULTS:
        return DEFAULTS[name]
    return "" if field.default is None else f"`{field.default}`"


def _title(error: type[OctavoError]) -> str:
    """Return the first line of an error's docstring.

    It is read from the class, because some errors cannot be instantiated without arguments.
    """
    return cleandoc(error.__doc__ or "").splitlines()[0]


def _all_errors(base: type[OctavoError]) -> list[type[OctavoError]]:
    found = [base]
    for error in base.__subclasses__():
        if error.__module__ in ERRORS:
            found += _all_errors(error)
    return found


if __name__ == "__main__":
    for file_name, page in PAGES.items():
        Path(sys.argv[1], file_name).write_text(page())
