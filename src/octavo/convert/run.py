"""What runs inside the sandbox: words as JSON and the text of a mapping in, a conversion out."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from octavo.convert.contract import sheets_from_json
from octavo.convert.engine import convert
from octavo.convert.mapping_text import mapping_from_text
from octavo.convert.records import conversion_to_json
from octavo.convert.suggestions import Suggestion, with_suggestions

if TYPE_CHECKING:
    from octavo.sandbox import Task


def run(task: Task) -> None:
    """With suggestions, those are weighed too: the rules run again, which is less than keeping what they made."""
    mapping = mapping_from_text(str(task.arguments["mapping"]), str(task.arguments["file"]))
    document: dict[str, Any] = json.load(task.input)
    sheets = sheets_from_json(document["pages"])
    attachments = [(str(name), b64decode(body)) for name, body in document["attachments"]]
    conversion = convert(sheets, mapping, attachments)
    suggested = task.arguments.get("suggestions")
    if isinstance(suggested, list):
        conversion = with_suggestions(conversion, mapping, sheets, _suggestions(suggested))
    task.output.write(conversion_to_json(conversion))


def _suggestions(rows: Sequence[Any]) -> list[Suggestion]:
    return [Suggestion(str(name), str(value), str(quote), page) for name, value, quote, page in rows]
