"""Tags are added to and removed from those a document has, whatever their case."""

from __future__ import annotations

import pytest

from octavo.cli.edit import TagChange


@pytest.mark.parametrize(
    ("change", "tags"),
    [
        (TagChange(["Law"], [], replaces=False), ["Bogs", "Peat", "Law"]),
        (TagChange(["bogs", " peat "], [], replaces=False), ["Bogs", "Peat"]),
        (TagChange([], ["BOGS"], replaces=False), ["Peat"]),
        (TagChange(["Law"], ["law"], replaces=False), ["Bogs", "Peat"]),
        (TagChange(["Law"], [], replaces=True), ["Law"]),
        (TagChange([], [], replaces=True), []),
    ],
)
def test_tags_are_added_removed_or_replaced(change: TagChange, tags: list[str]) -> None:
    assert change.apply(["Bogs", "Peat"]) == tags
