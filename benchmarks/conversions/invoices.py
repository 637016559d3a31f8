"""How well real invoices are read from the page alone: `python -m benchmarks.conversions.invoices [options] FOLDER...`.

FOLDERs hold PDFs with an embedded XML or a JSON file beside them (`labelled.py` says what counts and how the families
are split). `--half` chooses "development" (the default), "held out", "packages" or "both" (all of them); `--wrong`
names the wrong values; `--calibrate` writes the measured confidences from the chosen half; `--others FOLDER...` are
PDFs that are no invoices and must be refused.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.conversions.labelled import DEVELOPMENT, Labelled, LineTruth, letters, load, same_name, same_number
from octavo.convert.mappings.shipped_mappings import load_shipped
from octavo.convert.rules.engine import convert
from octavo.convert.values import Conversion, Value
from octavo.extract.pdf.placed_words import pages_as_json, read_words
from octavo.facts.confidence import REVIEW, tier
from octavo.facts.finding import Reading, read_document
from octavo.facts.words import sheets_from_json
from tests.support.invoices import make_invoice

CALIBRATION = Path(__file__).parents[2] / "src/octavo/facts/data/calibration.json"
GOALS = {"invoice_number": 0.95, "invoice_date": 0.95, "total": 0.95, "currency": 0.95, "seller": 0.9, "lines": 0.8}
FACTS = {
    "invoice_number": "number",
    "invoice_date": "date",
    "due_date": "due_date",
    "order_number": "order_id",
    "seller": "sender",
    "buyer": "recipient",
    "currency": "currency",
    "net": "net",
    "tax": "tax",
    "total": "amount",
    "iban": "iban",
    "seller_vat_id": "vat_id",
    "line_total": "line_sum",
}
MOST_OF_FAMILY = 4
LAYOUTS = 100
LEAST_NAME = 8  # letters of a description that is only a part of the one in the truth
LINE_FIELDS = ("description", "quantity", "unit_price", "amount")


@dataclass(frozen=True, slots=True)
class Judged:
    document: Labelled
    field: str
    right: bool
    found: str | None
    wanted: str
    confidence: float
    settled: bool


def is_right(name: str, found: str | None, wanted: str) -> bool:
    if name in {"net", "tax", "total", "line_total"}:
        return same_number(found, wanted)
    if name in {"seller", "buyer"}:
        lines = [line for line in wanted.splitlines() if not any(map(str.isdigit, line))]
        return same_name(found, " ".join(lines or [wanted]))
    return letters(found or "") == letters(wanted)


def judge(document: Labelled, made: Conversion) -> Iterator[Judged]:
    for name, wanted in document.printed.items():
        if name not in FACTS:
            continue
        got = made.single(name)
        if got is None and name == "line_total":  # most pages print it only as the net amount
            continue
        right = is_right(name, got.value if got else None, wanted)
        settled = got is not None and not got.needs_review
        yield Judged(document, name, right, got.value if got else None, wanted, got.confidence if got else 0, settled)


def wrong_cells(document: Labelled, row: dict[str, Value], wanted: LineTruth) -> Iterator[str]:
    """The columns of a row that are wrong. A quantity or price counts only if the page shows it."""
    for name in ("amount", "quantity", "unit_price"):
        value = getattr(wanted, name)
        if value and (name == "amount" or document.is_beside(wanted, value)):
            got = row.get(name)
            if got is None or not same_number(got.value, value):
                yield name
    got, name = letters(row["description"].value) if "description" in row else "", letters(wanted.description)
    if name and not (got and (name.startswith(got) or name in got or (len(got) >= LEAST_NAME and got in name))):
        yield "description"


def judge_lines(document: Labelled, made: Conversion) -> Judged:
    """A document's lines are right if there are as many as in the truth, in the same order, and every cell is right."""
    rows = made.table("lines")
    wrong = [
        f"row {number}: {', '.join(cells)}"
        for number, (row, wanted) in enumerate(zip(rows, document.lines, strict=False), 1)
        if (cells := list(wrong_cells(document, row, wanted)))
    ]
    if len(rows) != len(document.lines):
        wrong.append(f"{len(rows)} rows instead of {len(document.lines)}")
    cells = [cell for row in rows for cell in row.values()]
    settled = bool(cells) and not any(cell.needs_review for cell in cells)
    least = min((cell.confidence for cell in cells), default=0.0)
    return Judged(document, "lines", not wrong, "; ".join(wrong[:4]), f"{len(document.lines)} rows", least, settled)


def report(judged: Sequence[Judged], *, wrong: bool) -> bool:
    fields: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        fields[one.field].append(one)
    reached = True
    for name, ones in fields.items():
        right = sum(one.right for one in ones)
        goal = GOALS.get(name)
        reached = reached and (goal is None or right >= goal * len(ones))
        text = f"  {name:16} {right:3} of {len(ones):3}  {right / len(ones):6.1%}"
        print(text + (f"  goal {goal:.0%}" if goal else ""))
    sure = [one for one in judged if one.settled]
    bad = [one for one in sure if not one.right]
    print(f"  shown as sure: {len(sure)}, wrong among them: {len(bad)} ({len(bad) / max(len(sure), 1):.1%}, goal 2%)")
    if wrong:
        for one in judged:
            if not one.right:
                mark = "SURE" if one.settled else f"{one.confidence:.2f}"
                print(f"    {one.document.path.name} {one.field}: {one.found!r} instead of {one.wanted!r} [{mark}]")
    return reached and len(bad) <= 0.02 * len(sure)


def by_family(judged: Sequence[Judged]) -> None:
    families: dict[str, Counter[str]] = defaultdict(Counter)
    for one in judged:
        if one.field in GOALS:
            families[one.document.family][f"{one.field} all"] += 1
            families[one.document.family][one.field] += one.right
    for family, counts in families.items():
        print(f"  {family:24} " + "  ".join(f"{name} {counts[name]}/{counts[f'{name} all']}" for name in GOALS))


def calibrate(documents: Sequence[Labelled]) -> None:
    """Count right and all values for each tier of evidence.

    Documents of one family are alike, so that they count for at most `MOST_OF_FAMILY` values of a tier; wrong values
    always count. So no tier is sure that was seen in one family only. A made layout is a family of its own.
    """
    judged = [(document.family, *one) for document in documents for one in _tiers(document)]
    judged += [(f"made {number}", *one) for number in range(0, LAYOUTS, 2) for one in _tiers_of_made(number)]
    seen: Counter[tuple[str, str]] = Counter()
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for family, name, right in judged:
        seen[family, name] += 1
        if not right or seen[family, name] <= MOST_OF_FAMILY:
            counts[name][0] += right
            counts[name][1] += 1
    rows = (f' "{name}": [{right}, {count}]' for name, (right, count) in sorted(counts.items()))
    CALIBRATION.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    print(f"  {len(counts)} tiers from {len(documents)} documents written to {CALIBRATION.name}")


def _tiers(document: Labelled) -> Iterator[tuple[str, bool]]:
    reading = read_document(document.sheets)
    yield "kind: label", reading.is_invoice
    for name, fact in FACTS.items():
        choice = reading.values.get(fact)
        if choice and name in document.printed:
            right = is_right(name, choice.value, document.printed[name])
            yield f"{fact}: {tier(fact, choice.evidence)}", right
    if document.lines_are_printed:
        yield from _tiers_of_cells(document, reading)


def _tiers_of_cells(document: Labelled, reading: Reading) -> Iterator[tuple[str, bool]]:
    """One count for each column of a document: right if all of its cells are."""
    items = reading.items
    same = len(items.rows) == len(document.lines)
    counted: dict[str, bool] = {}
    for row, wanted in zip(items.rows, document.lines, strict=False):
        values = {name: Value(name, cell.value, 1.0) for name, cell in row.cells.items()}
        bad = set(wrong_cells(document, values, wanted))
        evidence = items.evidence(row)
        for name in (*LINE_FIELDS, "tax_rate"):
            if name in row.cells:
                key = f"items.{name}: {tier(f'items.{name}', evidence)}"
                counted[key] = counted.get(key, True) and same and name not in bad
    yield from counted.items()


def _tiers_of_made(number: int) -> Iterator[tuple[str, bool]]:
    made = make_invoice(number)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{made.name}.pdf"
        path.write_bytes(made.pdf)
        reading = read_document(sheets_from_json(pages_as_json(read_words(path))))
    truth = {"number": made.number, "date": made.day, "amount": made.total, "currency": made.currency}
    for fact, wanted in truth.items():
        choice = reading.values.get(fact)
        if choice:
            name = "total" if fact == "amount" else fact
            yield f"{fact}: {tier(fact, choice.evidence)}", is_right(name, choice.value, wanted)


def refused(folders: Sequence[Path]) -> bool:
    """Whether every PDF of these folders is refused as an invoice."""
    mapping = load_shipped("invoice_v1")
    taken: list[str] = []
    seen = 0
    for path in sorted(path for folder in folders for path in folder.rglob("*.pdf")):
        try:
            read = read_words(path)
            made = convert(sheets_from_json(pages_as_json(read)), mapping)
        except Exception as error:  # noqa: BLE001 - damaged files are part of the folders
            print(f"  {path.name}: {type(error).__name__}")
            continue
        seen += 1
        if made.fits and not set(made.missing) >= {one.name for one in mapping.fields if one.required}:
            taken.append(f"{path.name} {[(one.path, one.value) for one in made.values][:5]}")
    print(f"other documents: {seen - len(taken)} of {seen} refused" + "".join(f"\n    taken: {one}" for one in taken))
    return not taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="*")
    parser.add_argument("--half", default=DEVELOPMENT)
    parser.add_argument("--wrong", action="store_true")
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--others", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    documents = list(load(options.folders, options.half))
    if options.calibrate:
        calibrate(documents)
        return 0
    reached = True
    if documents:
        mapping = load_shipped("invoice_v1")
        made = [(document, convert(document.sheets, mapping)) for document in documents]
        judged = [one for document, found in made for one in judge(document, found)]
        judged += [judge_lines(document, found) for document, found in made if document.lines_are_printed]
        unfit = [document.path.name for document, found in made if not found.fits]
        print(f"{options.half}: {len(documents)} documents, review below {REVIEW}, refused: {unfit}")
        reached = report(judged, wrong=options.wrong)
        by_family(judged)
        review = sum(found.needs_review for _, found in made)
        print(f"  {len(made) - review} complete, {review} need review")
    return 0 if (not options.others or refused(options.others)) and reached else 1


if __name__ == "__main__":
    sys.exit(main())
