"""The text of a mapping, whatever kind of file it came from, as the mapping that it is."""

from __future__ import annotations

from functools import lru_cache

from octavo.convert.mapping import Mapping
from octavo.convert.mapping_files import load_yaml, read_mapping
from octavo.convert.shipped import shipped_text
from octavo.convert.templates import is_template, read_template


@lru_cache(maxsize=32)
def mapping_from_text(text: str, file: str) -> Mapping:
    """A mapping of ours, or a template of invoice2data. Raises `BadMapping`."""
    if is_template(load_yaml(text, file)):
        return read_template(text, file)
    return read_mapping(text, file, shipped_text)
