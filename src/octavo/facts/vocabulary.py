"""Loads the labels that identify values, in all languages, from `data/labels.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.resources import files
from typing import Any, NamedTuple

from octavo.facts.words import fold

_yaml: Any = import_module("yaml")  # the library has no types
_STARTS = re.compile(r"(?<![^\W_])\S")
_SEPARATORS = re.compile(r"[\s.\-]+")
# The section and role of labels that a caller adds, by the name of a fact.
_ADDED = {
    "number": ("numbers", "number"),
    "date": ("dates", "date"),
    "due_date": ("dates", "due_date"),
    "order_id": ("numbers", "order_id"),
    "account_id": ("numbers", "account_id"),
    "amount": ("amounts", "total"),
    "net": ("amounts", "net"),
    "tax": ("amounts", "tax"),
    "sender": ("parties", "seller"),
    "recipient": ("parties", "buyer"),
}


class RoleHit(NamedTuple):
    """A known label found in a text, and the role that it gives to a value, such as total or due date."""

    role: str
    start: int
    end: int


@dataclass(frozen=True)
class Section:
    """One section of the vocabulary, such as `dates`: the known labels of values, grouped by role."""

    phrases: Mapping[str, tuple[str, ...]]

    @cached_property
    def _groups(self) -> dict[str, list[tuple[str, str]]]:
        """Labels and their roles, grouped by the first letter of the label. Longer labels come first."""
        pairs = {fold(phrase): role for role, phrases in reversed(list(self.phrases.items())) for phrase in phrases}
        groups: dict[str, list[tuple[str, str]]] = {}
        for phrase, role in sorted(pairs.items(), key=lambda one: -len(one[0])):
            groups.setdefault(phrase[0], []).append((phrase, role))
        return groups

    @cached_property
    def _compiled(self) -> dict[str, re.Pattern[str]]:
        return {}

    def _pattern(self, letter: str) -> re.Pattern[str]:
        """Return one regular expression for all labels with this first letter. It is compiled on first use."""
        if letter not in self._compiled:
            shapes = (f"({_shape(phrase)})" for phrase, _ in self._groups[letter])
            self._compiled[letter] = re.compile("|".join(shapes))
        return self._compiled[letter]

    def find(self, folded: str) -> list[RoleHit]:
        """Return all labels in a text, in the order in which they appear and without overlaps.

        The text must be folded: without accents and in lower case.
        """
        found: list[RoleHit] = []
        end = 0
        for start in _STARTS.finditer(folded):
            group = self._groups.get(start[0])
            if start.start() < end or group is None:
                continue
            match = self._pattern(start[0]).match(folded, start.start())
            if match:
                end = match.end()
                found.append(RoleHit(group[(match.lastindex or 1) - 1][1], *match.span()))
        return found


def _shape(phrase: str) -> str:
    """Make a regular expression for a label.

    It ignores full stops, hyphens and spaces between words. A * in the label matches letters.
    """
    parts = [re.escape(part).replace(r"\*", r"[^\W\d]*") for part in _SEPARATORS.split(phrase) if part]
    end = "" if phrase.endswith(("*", "#", "°", "º", "%", ")")) else r"(?![^\W\d_])"
    return r"[\s.\-]*".join(parts) + end


@dataclass(frozen=True)
class Vocabulary:
    sections: Mapping[str, Section]
    without_tax: re.Pattern[str] = field(repr=False)
    with_tax: re.Pattern[str] = field(repr=False)

    def __getitem__(self, section: str) -> Section:
        return self.sections[section]


Labels = tuple[tuple[str, tuple[str, ...]], ...]


@lru_cache(maxsize=16)
def load_vocabulary(added: Labels = ()) -> Vocabulary:
    """Load the built-in labels. `added` contains additional labels for facts, such as ("number", ("our ref",))."""
    if not added:
        return _shipped()
    shipped = _shipped()
    changed: dict[str, dict[str, tuple[str, ...]]] = {}
    for name, labels in added:
        section, role = _ADDED.get(name, ("", ""))
        if section:
            roles = changed.setdefault(section, dict(shipped[section].phrases))
            roles[role] = (*labels, *roles[role])
    sections = {**shipped.sections, **{name: Section(roles) for name, roles in changed.items()}}
    return Vocabulary(sections, shipped.without_tax, shipped.with_tax)


@lru_cache(maxsize=1)
def _shipped() -> Vocabulary:
    sections = {
        name: {role: tuple(_phrases(one)) for role, one in roles.items()} for name, roles in read_data("labels").items()
    }
    modifiers = sections.pop("modifiers")
    words = {name: re.compile(_any_of(phrases)) for name, phrases in modifiers.items()}
    read = {name: Section(roles) for name, roles in sections.items()}
    return Vocabulary(read, words["without_tax"], words["with_tax"])


def read_data(name: str) -> dict[str, dict[str, Any]]:
    """Return the content of a YAML file in `data/`."""
    text = files("octavo.facts").joinpath(f"data/{name}.yaml").read_text(encoding="utf-8")
    return _yaml.load(text, Loader=getattr(_yaml, "CSafeLoader", _yaml.SafeLoader))


def _phrases(languages: dict[str, list[str]] | list[str]) -> Iterable[str]:
    groups = languages.values() if isinstance(languages, dict) else [languages]
    return (str(phrase) for group in groups for phrase in group)


def _any_of(phrases: Iterable[str]) -> str:
    return r"(?<![^\W\d_])(?:" + "|".join(_shape(fold(phrase)) for phrase in phrases) + ")"
