"""How well invoices are read: `python -m benchmarks.conversions.quality [FOLDER]`.

100 made layouts with `invoice_v1`, by half: the even ones were looked at while the rules were written, the odd ones
were not. A field counts as right if its value is and if its box lies on a page. FOLDER holds PDFs with their expected
values as JSON beside them, and templates of invoice2data: first each with the template that fits it, then without.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from octavo.convert.mappings.mapping import Mapping
from octavo.convert.mappings.shipped_mappings import load_shipped, read_template
from octavo.convert.rules.engine import convert
from octavo.convert.rules.patterns import fits
from octavo.convert.values import Conversion, Value
from octavo.extract.pdf.placed_words import pages_as_json, read_words
from octavo.facts.layout import text_in_columns
from octavo.facts.words import Sheet, sheets_from_json
from tests.support.invoices import make_invoice

LAYOUTS = 100
GOAL = 0.85
FIELDS = ("invoice_number", "invoice_date", "total", "currency")
# What the expected values of invoice2data call them.
THEIRS = dict(zip(FIELDS, ("invoice_number", "date", "amount", "currency"), strict=True))

Judged = tuple[str, str, bool]


def read_sheets(path: Path) -> list[Sheet]:
    return sheets_from_json(pages_as_json(read_words(path)))


def judge_made(numbers: Iterable[int], mapping: Mapping) -> Iterator[Judged]:
    with tempfile.TemporaryDirectory() as folder:
        for number in numbers:
            made = make_invoice(number)
            path = Path(folder) / f"{made.name}.pdf"
            path.write_bytes(made.pdf)
            wanted = dict(zip(FIELDS, (made.number, made.day, made.total, made.currency), strict=True))
            sheets = read_sheets(path)
            yield from judge(made.name, convert(sheets, mapping), wanted, sheets)


def judge(name: str, found: Conversion, wanted: dict[str, Any], sheets: list[Sheet]) -> Iterator[Judged]:
    for field, value in wanted.items():
        got = found.single(field)
        yield name, field, got is not None and same(got.value, value) and is_placed(got, sheets)


def same(got: str | None, wanted: Any) -> bool:  # noqa: ANN401
    """Numbers by their value, texts without the sign that some senders put before their numbers."""
    try:
        return Decimal(str(got)) == Decimal(str(wanted))
    except InvalidOperation:
        return str(got).lstrip("# ") == str(wanted).lstrip("# ")


def is_placed(value: Value, sheets: list[Sheet]) -> bool:
    sheet = next((one for one in sheets if value.place and one.number == value.place.page), None)
    if value.place is None or sheet is None:
        return False
    left, top, right, bottom = value.place.box
    return 0 <= left < right <= sheet.width and 0 <= top < bottom <= sheet.height


def judge_templates(folder: Path) -> Iterator[Judged]:
    """Every expected value, those of tables too."""
    files = sorted([*folder.glob("*.yml"), *folder.glob("*.json")])
    templates = [
        read_template(file.read_text(), file.name)
        for file in files
        if '"keywords"' in file.read_text() or file.suffix == ".yml"
    ]
    for pdf in sorted(folder.glob("*.pdf")):
        sheets = read_sheets(pdf)
        text = text_in_columns(sheets)
        fitting = next((one for one in templates if fits(one, text)), None)
        if fitting is None:
            print(f"  {pdf.name}: no template fits it")
            continue
        found = convert(sheets, fitting)
        for name, wanted in expected(pdf).items():
            yield pdf.name, name, is_as_expected(found, name, wanted)


def is_as_expected(found: Conversion, name: str, wanted: Any) -> bool:  # noqa: ANN401
    if not isinstance(wanted, list):
        got = found.single(name)
        return got is not None and same(got.value, wanted)
    rows = [{column: cell.value for column, cell in row.items()} for row in found.table(name)]
    return len(rows) == len(wanted) and all(
        row.keys() == want.keys() and all(same(row[key], want[key]) for key in row)
        for row, want in zip(rows, wanted, strict=True)
    )


def judge_folder(folder: Path, mapping: Mapping) -> Iterator[Judged]:
    for pdf in sorted(folder.glob("*.pdf")):
        theirs = expected(pdf)
        wanted = {field: theirs[name] for field, name in THEIRS.items() if name in theirs}
        sheets = read_sheets(pdf)
        yield from judge(pdf.name, convert(sheets, mapping), wanted, sheets)


def expected(pdf: Path) -> dict[str, Any]:
    return json.loads(pdf.with_suffix(".json").read_text())[0]


def report(title: str, judged: Iterable[Judged], goal: float, *, named: bool = True) -> bool:
    found = list(judged)
    print(f"{title}: {sum(right for *_, right in found)} of {len(found)} values are right")
    reached = bool(found)
    for field in dict.fromkeys(field for _, field, _ in found if field in FIELDS or goal < 1):
        own = [(name, right) for name, one, right in found if one == field]
        share = sum(right for _, right in own) / len(own)
        reached = reached and share >= goal
        print(f"  {field:16} {share:6.1%} of {len(own)}")
    if named:
        print("".join(f"  wrong: {name} {field}\n" for name, field, right in found if not right), end="")
    return reached and (goal < 1 or all(right for *_, right in found))


def main() -> int:
    mapping = load_shipped("invoice_v1")
    reached = [
        report("made layouts, looked at", judge_made(range(0, LAYOUTS, 2), mapping), GOAL),
        report("made layouts, kept out", judge_made(range(1, LAYOUTS, 2), mapping), GOAL, named=False),
    ]
    if len(sys.argv) > 1:
        folder = Path(sys.argv[1])
        reached.append(report("with their templates", judge_templates(folder), 1.0))
        reached.append(report("without a template", judge_folder(folder, mapping), GOAL))
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
