"""Loads the mappings that ship with Octavo, and parses the text of any mapping."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from octavo.convert.errors import UnknownMapping
from octavo.convert.mappings.invoice2data import is_template, read_template
from octavo.convert.mappings.mapping import Mapping
from octavo.convert.mappings.mapping_files import compile_patterns, load_yaml, read_mapping
from octavo.records.conversions import MappingSummary

_FOLDER = files("octavo.convert.mappings").joinpath("shipped")
_ENDING = ".yaml"


def shipped_names() -> list[str]:
    return sorted(file.name.removesuffix(_ENDING) for file in _FOLDER.iterdir() if file.name.endswith(_ENDING))


def shipped_text(name: str) -> str:
    """Return the content of a shipped mapping file.

    If there is no such file, raises `UnknownMapping` with a list of the shipped mappings.
    """
    if name not in shipped_names():
        raise UnknownMapping(f"{name[:80]!r} is not one of {', '.join(shipped_names())}.")
    return _FOLDER.joinpath(name + _ENDING).read_text(encoding="utf-8")


@lru_cache(maxsize=32)
def load_shipped(name: str) -> Mapping:
    return read_mapping(shipped_text(name), name + _ENDING, shipped_text)


def mapping_from_text(text: str, file: str) -> Mapping:
    """Parse and check a mapping or an invoice2data template. Raises `BadMapping`.

    Patterns are compiled to check them, so text written by users must be checked in the sandbox.
    """
    mapping = parse_mapping(text, file)
    compile_patterns(mapping, file)
    return mapping


def summarise(mapping: Mapping) -> MappingSummary:
    return MappingSummary(
        name=mapping.name,
        title=mapping.title,
        fields=[field.name for field in mapping.fields],
        required=[field.name for field in mapping.fields if field.required],
    )


@lru_cache(maxsize=32)
def parse_mapping(text: str, file: str) -> Mapping:
    """Parse a mapping that was checked when it was added. Its patterns are not compiled."""
    if is_template(load_yaml(text, file)):
        return read_template(text, file)
    return read_mapping(text, file, shipped_text)
