"""The mappings that come with Octavo, each a YAML file here that carries its name."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

from octavo.convert.errors import UnknownMapping
from octavo.convert.mapping import Mapping
from octavo.convert.mapping_files import read_mapping

_ENDING = ".yaml"


def shipped_names() -> list[str]:
    return sorted(file.name.removesuffix(_ENDING) for file in files(__name__).iterdir() if file.name.endswith(_ENDING))


def shipped_text(name: str) -> str:
    """The file as it is. Raises `UnknownMapping`, which lists those that there are."""
    if name not in shipped_names():
        raise UnknownMapping(f"{name[:80]!r} is none of {', '.join(shipped_names())}.")
    return files(__name__).joinpath(name + _ENDING).read_text(encoding="utf-8")


@lru_cache(maxsize=32)
def load_shipped(name: str) -> Mapping:
    return read_mapping(shipped_text(name), name + _ENDING, shipped_text)
