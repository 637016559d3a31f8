"""Imported by the warm parent of a sandbox: our own mappings are read once there, and not in each child."""

from __future__ import annotations

from octavo.convert.labels import column_labels, field_labels
from octavo.convert.mapping_text import mapping_from_text
from octavo.convert.shipped import shipped_names, shipped_text


def _load() -> None:
    for name in shipped_names():
        mapping = mapping_from_text(shipped_text(name), f"{name}.yaml")
        field_labels(mapping)
        for table in mapping.tables:
            column_labels(table.columns)


_load()
