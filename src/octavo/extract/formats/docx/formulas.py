"""Converts Office Math formulas to LaTeX, which people and models can read."""

from __future__ import annotations

from octavo.extract.office.xml import Element, attribute, child, children, name_of

_SUMS = {"∑": r"\sum", "∏": r"\prod", "∫": r"\int", "∬": r"\iint", "∮": r"\oint"}
_FUNCTIONS = frozenset({"sin", "cos", "tan", "log", "ln", "exp", "lim", "max", "min", "det", "arg"})
_PROPERTIES = "Pr"


def formula(element: Element) -> str:
    return " ".join(_content(element).split())


def _content(element: Element | None) -> str:
    if element is None:
        return ""
    return "".join(_part(one) for one in element if not name_of(one).endswith(_PROPERTIES))


def _part(element: Element) -> str:  # noqa: C901, PLR0911, PLR0912 - one case for each element
    get = {name_of(one): one for one in element}.get
    base = _content(get("m:e"))
    match name_of(element):
        case "m:r":
            return "".join(one.text or "" for one in element if name_of(one) in {"m:t", "w:t"}).replace("\u2013", "-")
        case "m:f":
            return rf"\frac{{{_content(get('m:num'))}}}{{{_content(get('m:den'))}}}"
        case "m:sSup":
            return f"{_grouped(base)}^{{{_content(get('m:sup'))}}}"
        case "m:sSub":
            return f"{_grouped(base)}_{{{_content(get('m:sub'))}}}"
        case "m:sSubSup":
            return f"{_grouped(base)}_{{{_content(get('m:sub'))}}}^{{{_content(get('m:sup'))}}}"
        case "m:rad":
            degree = _content(get("m:deg"))
            return rf"\sqrt[{degree}]{{{base}}}" if degree else rf"\sqrt{{{base}}}"
        case "m:d":
            return _delimited(element)
        case "m:nary":
            return _sum(element, base)
        case "m:func":
            name = _content(get("m:fName"))
            return rf"\{name}{{{base}}}" if name in _FUNCTIONS else f"{name} {base}"
        case "m:m":
            rows = (" & ".join(_content(cell) for cell in children(row, "m:e")) for row in children(element, "m:mr"))
            return r"\begin{matrix}" + r" \\ ".join(rows) + r"\end{matrix}"
        case "m:eqArr":
            return r" \\ ".join(_content(one) for one in children(element, "m:e"))
        case "m:acc" | "m:bar":
            return rf"\overline{{{base}}}"
        case "m:limLow":
            return f"{base}_{{{_content(get('m:lim'))}}}"
        case "m:limUpp":
            return f"{base}^{{{_content(get('m:lim'))}}}"
        case "w:del" | "w:moveFrom":
            return ""
        case _:
            return _content(element)


def _grouped(base: str) -> str:
    return base if len(base) == 1 else f"{{{base}}}"


def _delimited(element: Element) -> str:
    properties = child(element, "m:dPr")
    left = attribute(child(properties, "m:begChr"), "m:val")
    right = attribute(child(properties, "m:endChr"), "m:val")
    inside = ",".join(_content(one) for one in children(element, "m:e"))
    return f"{'(' if left is None else left}{inside}{')' if right is None else right}"


def _sum(element: Element, base: str) -> str:
    sign = attribute(child(element, "m:naryPr", "m:chr"), "m:val") or "∫"
    below, above = _content(child(element, "m:sub")), _content(child(element, "m:sup"))
    limits = (f"_{{{below}}}" if below else "") + (f"^{{{above}}}" if above else "")
    return f"{_SUMS.get(sign, sign)}{limits} {base}"
