"""Prompts are files with a version; a new version has everything asked anew that is asked again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from octavo.core.errors import Defect

VERSION = "version: "


@dataclass(frozen=True, slots=True)
class Prompt:
    version: str
    text: str


@cache
def load_prompt(name: str) -> Prompt:
    """`prompts/<name>.md`, followed by what every model is told about documents."""
    own, about_documents = _read(name), _read("about_documents")
    return Prompt(f"{own.version}.{about_documents.version}", f"{own.text}\n\n{about_documents.text}")


def _read(name: str) -> Prompt:
    head, _, text = files("octavo.ai").joinpath("prompts", f"{name}.md").read_text().partition("\n")
    if not head.startswith(VERSION):
        raise Defect(f"The prompt {name} does not begin with its version.")
    return Prompt(head.removeprefix(VERSION), text.strip())
