"""Loads the mappings that ship with Octavo, and parses the text of any mapping."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from octavo.convert.errors import UnknownMapping
from octavo.convert.mappings.invoice2data import is_template, read_template
from octavo.convert.mappings.mapping import Mapping
from octavo.convert.mappings.mapping_files import load_yaml, read_mapping

_FOLDER = files("octavo.convert.mappings").joinpath("shipped")
_ENDING = ".yaml"


def shipped_names() -> list[str]:
    return sorted(file.name.removesuffix(_ENDING) for file in _FOLDER.iterdir() if file.name.endswith(_ENDING))


def shipped_text(name: str) -> str:
    """The content of a shipped mapping file. Raises `UnknownMapping` with a list of the shipped mappings."""
    if name not in shipped_names():
        raise UnknownMapping(f"{name[:80]!r} is not one of {', '.join(shipped_names())}.")
    return _FOLDER.joinpath(name + _ENDING).read_text(encoding="utf-8")


@lru_cache(maxsize=32)
def load_shipped(name: str) -> Mapping:
    return read_mapping(shipped_text(name), name + _ENDING, shipped_text)


@lru_cache(maxsize=32)
def mapping_from_text(text: str, file: str) -> Mapping:
    """Parse a mapping or an invoice2data template. Raises `BadMapping`."""
    if is_template(load_yaml(text, file)):
        return read_template(text, file)
    return read_mapping(text, file, shipped_text)
