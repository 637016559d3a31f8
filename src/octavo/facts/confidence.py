"""The confidence of values, measured on labelled documents.

For example, if 95 of 100 values with the same evidence were correct, the confidence of such a value is about 0.95.
`python -m benchmarks.conversions.invoices --calibrate` writes `data/calibration.json`, and `python -m benchmarks.facts
--calibrate` writes `data/described.json`. For each field and tier (class) of evidence, the files contain the count of
correct values and the count of all values. Nothing in them is chosen by hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files

# Below this confidence, a person should review a value.
REVIEW = 0.85
MODEL = "model"  # evidence: a model returned the value
_MEASURED = ("calibration", "described")
_UNKNOWN = 0.5  # the confidence of a tier that was never seen
_CHECKS = {"sum", "lines", "repeated", "before due", "after date", "rate", "product", "checksum", "with number"}


def is_checked(evidence: frozenset[str]) -> bool:
    """Whether a cross-check supports the value, such as a matching sum, a second occurrence or a valid checksum."""
    return bool(evidence & _CHECKS) and "contradiction" not in evidence


def confidence(field: str, evidence: frozenset[str]) -> float:
    """Return how often a value of this field with this evidence was correct in the labelled documents, from 0 to 1.

    The result is smoothed, so that a few documents never give full confidence.
    """
    right, seen = _table().get(f"{field}: {tier(field, evidence)}", (0, 0))
    return round((right + 1) / (seen + 2), 3) if seen else _UNKNOWN


def tier(field: str, evidence: frozenset[str]) -> str:
    """Return the class ("tier") to which this evidence belongs. The confidence is measured for each class."""
    if MODEL in evidence:  # never measured
        return MODEL
    return _TIERS.get(field, _reference)(evidence)


@lru_cache(maxsize=1)
def _table() -> dict[str, tuple[int, int]]:
    texts = (files("octavo.facts").joinpath(f"data/{name}.json").read_text(encoding="utf-8") for name in _MEASURED)
    return {name: (right, seen) for text in texts for name, (right, seen) in json.loads(text).items()}


def _reference(evidence: frozenset[str]) -> str:
    if "short" in evidence and not evidence & {"label", "composed"}:
        return "weak, short"
    if "rival" in evidence:
        return "rival, repeated" if "repeated" in evidence else "rival"
    if evidence & {"label", "composed"}:
        return "label"
    if evidence & {"label above", "composed above"}:
        return "label above"
    if "heading" in evidence:
        return "heading"
    return "weak, repeated" if "repeated" in evidence else "weak"


def _first_of(*names: str) -> Callable[[frozenset[str]], str]:
    """Return a function that takes a set of evidence and returns the first of these names that is in the set.

    The function returns "none" if none of the names is in the set.
    """
    return lambda evidence: next((name for name in names if name in evidence), "none")


_own_date = _first_of(
    *("ambiguous", "rival", "label", "near title", "alone", "margin", "alone late", "publisher", "copyright", "file")
)


def _date(evidence: frozenset[str]) -> str:
    if "own" in evidence:
        return f"own, {_own_date(evidence)}"
    if "rival" in evidence and "ambiguous" not in evidence:
        return "rival, repeated" if "repeated" in evidence else "rival"
    known = _first_of("ambiguous", "label", "composed", "with number", "word", "heading")(evidence)
    if known == "none":
        return "weak, checked" if evidence & {"repeated", "before due"} else "weak"
    return "label" if known in {"composed", "with number"} else known


def _total(evidence: frozenset[str]) -> str:
    if "contradiction" in evidence:
        return "contradiction"
    label = "label" if "label" in evidence else "weak label" if "weak label" in evidence else "no label"
    rival = ", rival" if "rival" in evidence else ""
    for check in ("sum", "lines"):
        if check in evidence:
            return f"{check}, {label}{rival}"
    return f"{label}{rival}"


def _part(evidence: frozenset[str]) -> str:
    if "sum" not in evidence:
        return "lines" if "lines" in evidence else "alone"
    return "sum, rival" if "rival" in evidence else "sum"


def _currency(evidence: frozenset[str]) -> str:
    if "dollar" in evidence:
        return "dollar, country" if "country" in evidence else "dollar"
    if "only" in evidence:
        return "only"
    return "several, label" if "label" in evidence else "several"


_PLACES = {"return line", "owner", "footer", "letterhead", "domain", "address window"}


def _party(evidence: frozenset[str]) -> str:
    rival = ", rival" if "rival" in evidence else ""
    known = evidence & {"mail", "signature"}
    if known:
        return min(known)
    if "not invoice" in evidence:
        return f"letterhead{rival}"
    if "label" in evidence:
        return f"label{rival}"
    places = len(evidence & _PLACES)
    return f"{min(places, 3)} places{rival}"


def _cell(evidence: frozenset[str]) -> str:
    parts = [name for name in ("incomplete", "loose", "sum", "product") if name in evidence]
    return ", ".join(parts) or "none"


def _identifier(evidence: frozenset[str]) -> str:
    form = "checksum" if "checksum" in evidence else "form"
    if "several" in evidence:
        return f"{form}, several, beside the name" if "beside the name" in evidence else f"{form}, several"
    return form


def _title(evidence: frozenset[str]) -> str:
    if "printed" in evidence:
        return "printed, claimed" if "claimed" in evidence else "large" if "large" in evidence else "printed"
    return _first_of("claimed", "heading", "first line", "running head", "metadata", "filename")(evidence)


_TIERS: dict[str, Callable[[frozenset[str]], str]] = {
    "kind": _first_of("label", "format", "signs", "strong", "words", "leaning", "web", "prose", "pasted"),
    "title": _title,
    "author": _first_of("publisher", "byline", "below title", "metadata"),
    "language": _first_of("detected"),
    "date": _date,
    "amount": _total,
    "net": _part,
    "tax": _part,
    "line_sum": _part,
    "charges": _part,
    "currency": _currency,
    "sender": _party,
    "recipient": _party,
    "items.description": _cell,
    "items.quantity": _cell,
    "items.unit_price": _cell,
    "items.tax_rate": _cell,
    "items.amount": _cell,
    "iban": _identifier,
    "vat_id": _identifier,
    "doi": _identifier,
    "isbn": _identifier,
    "register_id": _identifier,
}
