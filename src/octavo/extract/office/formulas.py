"""Writes formulas (Office Math, MathML) as one line of plain text: `a/b`, `x^2`, `√(x + 1)`, `∑[i = 1]^n x[i]`.

In Markdown, a formula is `<math>…</math>` around that line, so that search, chunks and quotes contain text that people
can read. The reader page displays it as MathML. Characters with a special meaning in Markdown are replaced with similar
mathematical characters. A literal slash, caret or underscore cannot be distinguished from notation.
"""

# ruff: noqa: RUF001 - mathematical characters look like others

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from octavo.extract.office.xml import Element, attribute, child, children, local_name, name_of

MOST_CHARACTERS = 4000
_TOKEN = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+[\u0300-\u036f\u20d0-\u20ff]*|\S")
_ATOM = re.compile(
    r"(?:\d+(?:[.,]\d+)*|[^\W\d_]+[\u0300-\u036f\u20d0-\u20ff]*|[^\s()\[\]])(?:\[[^\[\]()]*\])?(?:\^(?:\d+|[^\W\d_]+))?"
)
_WORD = re.compile(r"[^\W\d_]+")
_TWINS = str.maketrans(
    {"*": "∗", "\\": "∖", "`": "‵", "|": "∣", '"': "″", "\u2061": " ", "\u2062": " "}
    | {"\u2063": " ", "\u2064": " ", "\u200b": "", "\u2013": "-", "\u2212": "-"}
)
_SPACED = frozenset("=≠<>≤≥≪≫≈≅≡∼≃∝∈∉∋⊂⊃⊆⊇→←↔⇒⇐⇔↦+-±∓×⋅·÷∗∧∨∪∩∣∥⊕⊗≔:")
_ACCENTS = {"^": "\u0302", "ˆ": "\u0302", "\u0302": "\u0302", "~": "\u0303", "˜": "\u0303", "\u0303": "\u0303",
            "→": "\u20d7", "\u20d7": "\u20d7", "˙": "\u0307", "\u0307": "\u0307", "¨": "\u0308",
            "\u0308": "\u0308", "ˇ": "\u030c", "\u030c": "\u030c"}  # fmt: skip
_BARS = frozenset("¯‾\u0304\u0305_\u0332―")
_NOT_SHOWN = frozenset({"annotation", "annotation-xml", "mphantom", "maligngroup", "malignmark", "none", "mprescripts"})
_SKIPPED = frozenset({"w:del", "w:moveFrom"})


def to_markup(line: str, *, is_block: bool = False) -> str:
    """Write a formula as Markdown. Returns an empty string for an empty formula.

    If `is_block` is true, the formula is displayed on a separate line.
    """
    line = " ".join(line.split())
    if not line:
        return ""
    safe = line[:MOST_CHARACTERS].replace("&", "&amp;").replace("](", "] (").replace("<", "&lt;")
    return f'<math display="block">{safe}</math>' if is_block else f"<math>{safe}</math>"


# Notation ----------------------------------------------------------------------------------------------------------


def _join(parts: Iterable[str]) -> str:
    """Join the parts of a formula. Spaces surround relations and operators, and separate adjacent names and numbers."""
    line = ""
    for part in filter(None, parts):
        before = line.rstrip()
        is_first = not before or before[-1] in "([{," or before[-1] in _SPACED
        if part[0] in _SPACED and not (is_first and part[0] in "+-±∓"):
            line = f"{before} {part[0]} {part[1:].lstrip()}"
        elif (before[-1:] in _SPACED and before[-2:-1] == " ") or (line and _touch(line, part)):
            line = f"{before} {part}"
        else:
            line += part
    return " ".join(line.split())


def _touch(line: str, part: str) -> bool:
    """Whether two parts of a formula, such as two names, need a space between them so that they are not read as one.

    A square bracket also needs a space, because otherwise it is read as an index.
    """
    is_name = part[0].isalnum() or part[0] in '"√∑∏∫['
    return is_name and (line[-1].isalnum() or line[-1] in ')]"∑∏∫' or _is_mark(line[-1]))


def _is_mark(character: str) -> bool:
    return "\u0300" <= character <= "\u036f" or "\u20d0" <= character <= "\u20ff"


def _tokens(text: str) -> str:
    return _join(_TOKEN.findall(text.translate(_TWINS)))


def _words(text: str) -> str:
    text = " ".join(text.translate(_TWINS).split())
    return text if not text or _WORD.fullmatch(text) else f'"{text}"'


def _group(line: str) -> str:
    """Put an operand in brackets if it has several parts, so that the fraction of x + 1 and 2 becomes "(x + 1)/2"."""
    return line if _ATOM.fullmatch(line) else f"({line})"


def _fraction(above: str, below: str) -> str:
    return f"{_group(above)}/{_group(below)}"


def _scripts(base: str, below: str, above: str) -> str:
    base = base if not base or _ATOM.fullmatch(base) or _is_bracketed(base) else f"({base})"
    return base + (f"[{below}]" if below else "") + (f"^{_group(above)}" if above else "")


def _is_bracketed(line: str) -> bool:
    """Whether one pair of brackets contains the whole line."""
    depth = 0
    for place, character in enumerate(line):
        depth += (character in "([{") - (character in ")]}")
        if depth <= 0:
            return place == len(line) - 1 and place > 0
    return False


def _root(degree: str, base: str) -> str:
    return f"root({degree}, {base})" if degree and degree != "2" else f"√{_group(base)}"


def _accented(base: str, accent: str) -> str:
    if accent in _BARS:
        return f"overline({base})"
    mark = _ACCENTS.get(accent)
    return base + mark if mark and len(base) == 1 else f"{_scripts(base, '', accent)}" if accent else base


def _matrix(rows: Iterable[Sequence[str]]) -> str:
    return f"matrix({'; '.join(', '.join(row) for row in rows)})"


# Office Math -------------------------------------------------------------------------------------------------------


def from_office(element: Element | None) -> str:
    """Convert a formula from Word or PowerPoint to one line of plain text."""
    if element is None:
        return ""
    return _join(_office_part(one) for one in element if not name_of(one).endswith("Pr"))


def _office_part(element: Element) -> str:  # noqa: C901, PLR0911, PLR0912 - one case for each element
    get = {name_of(one): one for one in element}.get
    base = from_office(get("m:e"))
    match name_of(element):
        case "m:r":
            return _office_run(element)
        case "m:f":
            return _fraction(from_office(get("m:num")), from_office(get("m:den")))
        case "m:sSup" | "m:sSub" | "m:sSubSup":
            return _scripts(base, from_office(get("m:sub")), from_office(get("m:sup")))
        case "m:sPre":
            return _join(["", _scripts("", from_office(get("m:sub")), from_office(get("m:sup"))), base])
        case "m:rad":
            return _root(from_office(get("m:deg")), base)
        case "m:d":
            return _office_brackets(element)
        case "m:nary":
            sign = attribute(child(element, "m:naryPr", "m:chr"), "m:val") or "∫"
            return _join([_scripts(sign, from_office(get("m:sub")), from_office(get("m:sup"))), base])
        case "m:func":
            return _join([from_office(get("m:fName")), base if base.startswith("(") else f" {base}"])
        case "m:m":
            return _matrix([from_office(cell) for cell in children(row, "m:e")] for row in children(element, "m:mr"))
        case "m:eqArr":
            return "; ".join(from_office(one) for one in children(element, "m:e"))
        case "m:acc":
            return _accented(base, attribute(child(element, "m:accPr", "m:chr"), "m:val") or "\u0302")
        case "m:bar":
            return f"overline({base})"
        case "m:limLow" | "m:groupChr":
            return _scripts(base, from_office(get("m:lim")), "")
        case "m:limUpp":
            return _scripts(base, "", from_office(get("m:lim")))
        case name:
            return "" if name in _SKIPPED else from_office(element)


def _office_run(element: Element) -> str:
    text = "".join(one.text or "" for one in element if name_of(one) in {"m:t", "w:t"})
    is_text = child(element, "m:rPr", "m:nor") is not None
    return _words(text) if is_text else _tokens(text)


def _office_brackets(element: Element) -> str:
    properties = child(element, "m:dPr")
    left, right, between = (
        (attribute(child(properties, name), "m:val") if child(properties, name) is not None else default) or ""
        for name, default in (("m:begChr", "("), ("m:endChr", ")"), ("m:sepChr", ","))
    )
    inside = f"{between.translate(_TWINS) or ','} ".join(from_office(one) for one in children(element, "m:e"))
    return f"{left.translate(_TWINS)}{inside}{right.translate(_TWINS)}"


# MathML ------------------------------------------------------------------------------------------------------------


def from_mathml(element: Element) -> str:
    """Convert a MathML formula to one line of plain text."""
    parts = [_mathml_part(one) for one in element] if len(element) else [_tokens(element.text or "")]
    return _join(parts)


def _mathml_part(element: Element) -> str:  # noqa: C901, PLR0911, PLR0912 - one case for each element
    name = local_name(element)
    inside = [_mathml_part(one) for one in element] if name not in {"mtable", "mfenced"} else []
    first, second, third = [*inside, "", "", ""][:3]
    match name:
        case "mi" | "mn" | "mo" | "mglyph":
            return _tokens("".join(element.itertext()))
        case "mtext" | "ms":
            return _words("".join(element.itertext()))
        case "mspace" | "mpadded" if not inside:
            return ""
        case "mfrac":
            return _fraction(first, second)
        case "msup" | "mover":
            return _over(first, second)
        case "msub" | "munder":
            return _scripts(first, second, "")
        case "msubsup" | "munderover":
            return _scripts(first, second, third)
        case "msqrt":
            return _root("", _join(inside))
        case "mroot":
            return _root(second, first)
        case "mfenced":
            separator = (element.get("separators") or ",").strip()[:1].translate(_TWINS)
            opening, closing = (element.get(one) for one in ("open", "close"))
            content = f"{separator} ".join(_mathml_part(one) for one in element)
            return f"{'(' if opening is None else opening}{content}{')' if closing is None else closing}"
        case "mtable":
            rows = [one for one in element if local_name(one) in {"mtr", "mlabeledtr"}]
            return _matrix([from_mathml(cell) for cell in row] for row in rows)
        case "semantics":
            return first
        case _:
            return "" if name in _NOT_SHOWN else _join(inside) if inside else _tokens(element.text or "")


def _over(base: str, above: str) -> str:
    is_accent = above in _BARS or above in _ACCENTS
    return _accented(base, above) if is_accent else _scripts(base, "", above)
