"""The words that say what a value is, in all languages, from `data/labels.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from importlib import import_module
from importlib.resources import files
from typing import Any, NamedTuple

from octavo.facts.words import fold

_yaml: Any = import_module("yaml")  # it has no types
_SEPARATORS = re.compile(r"[\s.\-]+")
# Section and role of labels that a caller adds, by the name of a fact.
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
    """A label in a text and the role it gives to a value."""

    role: str
    start: int
    end: int


@dataclass(frozen=True)
class Section:
    """The labels of one section, such as `dates`, by role."""

    phrases: Mapping[str, tuple[str, ...]]

    @cached_property
    def _roles(self) -> list[str]:
        return [role for role, _ in self._sorted]

    @cached_property
    def _sorted(self) -> list[tuple[str, str]]:
        pairs = {fold(phrase): role for role, phrases in reversed(self.phrases.items()) for phrase in phrases}
        return sorted(((role, phrase) for phrase, role in pairs.items()), key=lambda one: -len(one[1]))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("(?<![^\\W_])(?:" + "|".join(f"({_shape(phrase)})" for _, phrase in self._sorted) + ")")

    def find(self, folded: str) -> list[RoleHit]:
        """All labels in a text that was folded, in text order; they do not overlap."""
        return [
            RoleHit(self._roles[(match.lastindex or 1) - 1], *match.span()) for match in self._pattern.finditer(folded)
        ]


def _shape(phrase: str) -> str:
    """A pattern for a label. Points, hyphens and spaces between its words do not count; * stands for letters."""
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
    """The shipped vocabulary. `added` are further labels by the name of a fact, such as ("number", ("our ref",))."""
    sections: dict[str, dict[str, tuple[str, ...]]] = {
        name: {role: tuple(_phrases(languages)) for role, languages in roles.items()} for name, roles in _read().items()
    }
    for name, labels in added:
        section, role = _ADDED.get(name, ("", ""))
        if section:
            sections[section][role] = (*labels, *sections[section][role])
    modifiers = sections.pop("modifiers")
    words = {name: re.compile(_any_of(phrases)) for name, phrases in modifiers.items()}
    read = {name: Section(roles) for name, roles in sections.items()}
    return Vocabulary(read, words["without_tax"], words["with_tax"])


@lru_cache(maxsize=1)
def _read() -> dict[str, dict[str, Any]]:
    text = files("octavo.facts").joinpath("data/labels.yaml").read_text(encoding="utf-8")
    return _yaml.load(text, Loader=getattr(_yaml, "CSafeLoader", _yaml.SafeLoader))


def _phrases(languages: Any) -> Iterable[str]:  # noqa: ANN401
    groups: Iterable[list[str]] = languages.values() if isinstance(languages, dict) else [languages]  # pyright: ignore[reportUnknownVariableType]
    return (str(phrase) for group in groups for phrase in group)


def _any_of(phrases: Iterable[str]) -> str:
    return r"(?<![^\W\d_])(?:" + "|".join(_shape(fold(phrase)) for phrase in phrases) + ")"
