"""Finds the items of an invoice: the rows of a table of amounts. Usually, their sum is printed below the table.

The header names the columns. Each amount in the amount column belongs to one row. The numbers next to the amount are
the quantity and unit price, and the text in the description column is the description.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import accumulate

from octavo.facts.layout import Line, TextRun, make_run
from octavo.facts.mentions import Mention, NearText, PageRuns
from octavo.facts.money import classify, is_money
from octavo.facts.words import Box, Place, Word, enclosing_box

_NUMBER_COLUMNS = ("quantity", "unit_price", "tax_rate", "amount")
_SUMS = {"total", "net", "tax", "due", "line_sum"}
_MOST_HEAD_WORDS = 14
_BAND = 4  # lines of a header above and below its main line
_CLOSE = 1.3  # in line heights, between the lines of one header
_TIGHT = 0.6  # in line heights, between the lines of one cell
_BESIDE = 1.2  # in line heights, between an amount and the other numbers of its row
_NEAR_COLUMN = 45.0  # points between a number and the header of its column
_CLEAR_LABEL = 0.7
_CLEAR_HEAD = 3  # columns
_MOST_ROWS = 1000
_CENTS = Decimal("0.021")
_RATE_WORDS = 2  # such as "TVA 20%"
_PERCENT = re.compile(r"(?<![\d.,])\d{1,2}(?:[.,]\d{1,3})?\s?%")
_KEY = re.compile(r"^[^\W\d][\w .\-]{1,40}\s?:\s?\S")


@dataclass(frozen=True, slots=True)
class Cell:
    value: str
    place: Place


@dataclass(slots=True)
class Item:
    """A row of the item table. `cells` can have the keys description, quantity, unit_price, tax_rate and amount."""

    cells: dict[str, Cell] = field(default_factory=dict[str, Cell])
    has_product: bool = False

    @property
    def amount(self) -> Decimal:
        return Decimal(self.cells["amount"].value)


@dataclass(frozen=True, slots=True)
class Items:
    """All items of an invoice.

    `lines` contains the numbers of the lines on which they are printed. `is_sum_printed` is true if the sum of the
    items is printed in the document. `is_unread` is true if a page has a table header, but no rows were found below it.
    `is_loose` is true if the numbers are not aligned with the header. `columns` contains the names of the cells that a
    row should have.
    """

    rows: tuple[Item, ...] = ()
    lines: frozenset[int] = frozenset()
    is_sum_printed: bool = False
    is_unread: bool = False
    is_loose: bool = False
    columns: frozenset[str] = frozenset()

    def evidence(self, row: Item) -> frozenset[str]:
        """Return the evidence for the cells of a row, as names such as `sum` or `product`."""
        signs = {
            "sum": self.is_sum_printed,
            "product": row.has_product,
            "loose": self.is_loose,
            "incomplete": not self.columns <= row.cells.keys(),
        }
        return frozenset(name for name, has in signs.items() if has)

    @property
    def products(self) -> int:
        return sum(row.has_product for row in self.rows)

    @property
    def sum(self) -> Decimal | None:
        return sum((row.amount for row in self.rows), Decimal(0)) if self.rows else None


@dataclass(frozen=True, slots=True)
class Head:
    """The header of an item table.

    `columns` contains the box of each column that is used, and `others` the boxes of the other columns. `first` and
    `last` are the numbers of the header's first and last line. `amounts` contains the boxes of all columns that may
    contain the amounts.
    """

    columns: dict[str, Box]
    others: tuple[Box, ...]
    first: int
    last: int
    amounts: tuple[Box, ...] = ()
    is_loose: bool = False

    def variants(self) -> Iterator[Head]:
        """Yield copies of this header, each of which uses a different column for the amounts, such as amounts without
        tax.
        """
        own = self.columns["amount"]
        for box in self.amounts:
            if box != own:
                columns = {**self.columns, "amount": box}
                yield replace(self, columns=columns, others=(*self.others, own), amounts=())

    def loose(self) -> Head:
        """Return a copy of this header for tables whose numbers are not below their headings.

        Such numbers are identified by their order in the row.
        """
        return replace(self, is_loose=True)


def find_items(page: PageRuns) -> Items:
    """Find the item table of an invoice and return its items.

    If there are several tables, a table whose sum is printed is preferred.
    """
    heads = list(_heads(page))
    best = Items(is_unread=any(len(head.columns) >= _CLEAR_HEAD for head in heads))
    best_score = -1.0
    for head in heads:
        items = _clearest(page, head)
        score = 100.0 * items.is_sum_printed + items.products + 0.1 * len(items.rows) + len(head.columns)
        if items.rows and score > best_score:
            best, best_score = items, score
    return best


def _clearest(page: PageRuns, head: Head) -> Items:
    """Return the items of a table.

    The table is read in several ways: with each column that may contain the amounts, and by the order of the numbers in
    its rows. The first reading is used unless another one is clearly better: the sum of its items is printed, and more
    of its amounts equal quantity times price.
    """
    best = _read(page, head)
    for variant in head.variants():
        items = _read(page, variant)
        if items.products > best.products and items.is_sum_printed and len(items.rows) == len(best.rows):
            best = items
    items = _read(page, head.loose())
    return items if items.is_sum_printed and items.products > best.products else best


# Heads


def _heads(page: PageRuns) -> Iterator[Head]:
    last = -1
    for line in page.lines:
        if line.number <= last:
            continue
        head = _head(page, line)
        if head:
            last = head.last
            yield head


def _head(page: PageRuns, line: Line) -> Head | None:
    """Return the table header at this line. Returns None if the line does not belong to a header.

    A header names at least two columns, one of which is for amounts or prices. It contains no amounts of money.
    """
    main = _labels(page, line)
    if len({role for role, _ in main if role != "other_column"}) < 2 or _has_money(page, line):  # noqa: PLR2004
        return None
    band = [line, *_adjacent(page, line, -1), *_adjacent(page, line, 1)]
    labels = [label for one in band for label in _labels(page, one)]
    columns = _columns(labels)
    if "amount" not in columns or not ({"description", "quantity", "unit_price"} & columns.keys()):
        return None
    others = tuple(box for role, box in labels if role == "other_column")
    numbers = [one.number for one in band]
    amounts = tuple(box for role, box in labels if role == "amount" and box != columns.get("quantity"))
    return Head(columns, others, min(numbers), max(numbers), amounts)


def _labels(page: PageRuns, line: Line) -> list[tuple[str, Box]]:
    found: list[tuple[str, Box]] = []
    for run in line.runs:
        hits = page.hits("columns", run.folded) if len(run.words) <= _MOST_HEAD_WORDS else []
        covered = sum(hit.end - hit.start for hit in hits)
        if hits and covered >= 0.4 * len(run.folded):
            found += [(hit.role, run.place(hit.start, hit.end).box) for hit in hits]
    return found


def _adjacent(page: PageRuns, line: Line, step: int) -> Iterator[Line]:
    """Yield the other lines of a header, directly above or below `line`.

    They are close to each other, short, and without numbers.
    """
    before = line
    for number in range(line.number + step, line.number + step * _BAND, step):
        if not 0 <= number < len(page.lines):
            return
        one = page.lines[number]
        gap = max(one.box.top - before.box.bottom, before.box.top - one.box.bottom)
        words = len(one.words)
        if one.page != line.page or gap > _CLOSE * line.box.height * 0.8 or _has_numbers(page, one) or words > 12:  # noqa: PLR2004
            return
        is_other = not _labels(page, one) and (words > 4 or gap > _TIGHT * line.box.height)  # noqa: PLR2004
        if is_other or any(run.text.endswith(":") for run in one.runs):
            return
        yield one
        before = one


def _columns(labels: Sequence[tuple[str, Box]]) -> dict[str, Box]:
    """Assign a role, such as quantity or amount, to each column and return the boxes by role.

    If several columns can be the amount column, the rightmost one is used. The leftmost one becomes the quantity column
    if it is to the left of the descriptions.
    """
    columns: dict[str, Box] = {}
    by_role: dict[str, list[Box]] = {}
    for role, box in labels:
        by_role.setdefault(role, []).append(box)
    for role, boxes in by_role.items():
        if role == "amount":
            columns[role] = max(boxes, key=lambda box: box.right)
        elif role != "other_column":
            columns[role] = boxes[0] if role != "description" else min(boxes, key=lambda box: box.left)
    _drop_stacked(columns, by_role)
    prices = sorted(by_role.get("unit_price", []), key=lambda box: box.right)
    if "amount" not in columns and len(prices) > 1:
        columns["amount"], columns["unit_price"] = prices[-1], prices[0]
    amounts = sorted(by_role.get("amount", []), key=lambda box: box.left)
    description = columns.get("description")
    if description and len(amounts) > 1 and amounts[0].right < description.left:
        columns.setdefault("quantity", amounts[0])
    return columns


def _drop_stacked(columns: dict[str, Box], by_role: dict[str, list[Box]]) -> None:
    """Remove a tax rate column that is really the second line of another heading, such as "tax" below "Price
    without".
    """
    rate = columns.get("tax_rate")
    heads = [*by_role.get("amount", []), *by_role.get("unit_price", [])]
    if rate and any(min(rate.right, box.right) > max(rate.left, box.left) and rate.top != box.top for box in heads):
        del columns["tax_rate"]


def _has_money(page: PageRuns, line: Line) -> bool:
    return any(is_money(page, one) for index, run in enumerate(line.runs) for one in page.of_run("amount", run, index))


def _has_numbers(page: PageRuns, line: Line) -> bool:
    return any(page.of_run("amount", run, index) for index, run in enumerate(line.runs))


# Rows


def _read(page: PageRuns, head: Head) -> Items:
    region = list(_region(page, head))
    anchors = _anchors(page, region, head) or _anchors(page, region, head, plain=True)
    printed = _printed(page, set(range(head.first, region[-1].number + 1)) if region else set())
    anchors, is_printed = _cut(anchors, printed, _leading(page, anchors, head))
    if not anchors or not (is_printed or is_money(page, anchors[0])):
        return Items()
    tops = _tops(page, anchors, head, region)
    rows: list[Item] = []
    taken: set[int] = set()
    for index, anchor in enumerate(anchors[:_MOST_ROWS]):
        follower = tops[index + 1] if index + 1 < len(anchors) else None
        item = Item({"amount": _cell(anchor)})
        lines = [line for line in region if _belongs(line, tops[index], follower)]
        _add_numbers(page, item, anchor, head)
        _add_description(page, item, anchor, lines, head)
        taken |= {anchor.run.line, *(line.number for line in _beside(page, anchor))}
        rows.append(item)
    columns = frozenset(head.columns.keys() & {"description", "quantity", "unit_price"})
    return Items(tuple(rows), frozenset(taken), is_printed, is_loose=head.is_loose, columns=columns)


def _region(page: PageRuns, head: Head) -> Iterator[Line]:
    """Yield the lines of the table, from the header down to the sums. Headers repeated on later pages are skipped."""
    skip = head.last
    group = Decimal(0)
    for line in page.lines[head.last + 1 :]:
        if line.number <= skip:
            continue
        amounts = _anchors(page, [line], head)
        if _is_sum(page, line):
            is_group = amounts and Decimal(amounts[0].value) == group and len(line.runs) <= 2  # noqa: PLR2004
            if not is_group or not _goes_on(page, line, head):
                return
            group = Decimal(0)
            continue
        if _is_sum_head(page, line):
            return
        group += sum((Decimal(one.value) for one in amounts), Decimal(0))
        again = _head(page, line)
        if again and again.columns.keys() >= {"amount"}:
            if not _same_columns(head, again):
                return
            skip = again.last
            continue
        yield line


def _same_columns(first: Head, second: Head) -> bool:
    shared = first.columns.keys() & second.columns.keys()
    return len(shared) >= min(len(first.columns), len(second.columns), 3) and all(
        abs(first.columns[name].left - second.columns[name].left) < _NEAR_COLUMN for name in shared
    )


def _is_sum(page: PageRuns, line: Line) -> bool:
    """Whether a line is a sum: it contains an amount and the label of a sum."""
    money = [
        one for index, run in enumerate(line.runs) for one in page.of_run("amount", run, index) if is_money(page, one)
    ]
    if not money:
        return False
    first = next((run for run in line.runs if any(map(str.isalpha, run.text))), None)
    if first is None:
        return False
    index = line.runs.index(first)
    values = page.of_run("amount", first, index)
    end = values[0].start if values else len(first.text)
    found = classify(page, NearText(first.text[:end], first.folded[:end], "left", first.box))
    return bool(found) and found[0] in _SUMS and found[1] >= _CLEAR_LABEL


def _goes_on(page: PageRuns, line: Line, head: Head) -> bool:
    """Whether more items follow after the subtotal of a group.

    True if the next amount belongs to a row with a quantity and a price, and no other sum comes before that row.
    """
    for one in page.lines[line.number + 1 :]:
        if _is_sum(page, one):
            return False
        for anchor in _anchors(page, [one], head):
            item = Item()
            _add_numbers(page, item, anchor, head)
            is_summed = any(_sum_role(page, run) for run in one.runs)
            return {"quantity", "unit_price"} <= item.cells.keys() and not is_summed
    return False


def _is_sum_head(page: PageRuns, line: Line) -> bool:
    """Whether a line is the header of a table of sums, such as "Net  Tax  Total"."""
    if _has_numbers(page, line):
        return False
    return len({_sum_role(page, run) for run in line.runs} - {None}) >= 2  # noqa: PLR2004


def _sum_role(page: PageRuns, run: TextRun) -> str | None:
    """Return the role of a sum, such as net or total, if this text is its label. Returns None for other texts."""
    found = classify(page, NearText(run.text, run.folded, "left", run.box))
    return found[0] if found and found[0] in _SUMS and found[1] >= _CLEAR_LABEL else None


def _anchors(page: PageRuns, region: Sequence[Line], head: Head, *, plain: bool = False) -> list[Mention]:
    """Return the amounts in the amount column, at most one per line.

    Each of them belongs to one row of the table. If `plain` is true, numbers without cents or a currency are accepted
    as well.
    """
    if head.is_loose:
        return [one for line in region if (one := _last_product(page, line))]
    column = head.columns["amount"]
    is_last = all(box.right <= column.right for box in (*head.columns.values(), *head.others))
    found: list[Mention] = []
    for line in region:
        numbers = (one for index, run in enumerate(line.runs) for one in page.of_run("amount", run, index))
        near = [
            one
            for one in numbers
            if (plain or is_money(page, one))
            and _distance(one.box, column) <= _NEAR_COLUMN
            and not _is_nearer(one.box, head, "amount")
        ]
        # In the last column, the rightmost number is used: other numbers may belong to the column before.
        best = max if is_last else min
        if near:
            found.append(best(near, key=lambda one: one.box.right if is_last else _distance(one.box, column)))
    return found


def _last_product(page: PageRuns, line: Line) -> Mention | None:
    """Return the last amount of a line if it equals the product of two numbers before it. Otherwise, returns None."""
    numbers = [one for index, run in enumerate(line.runs) for one in page.of_run("amount", run, index)]
    if not numbers or not is_money(page, numbers[-1]):
        return None
    return numbers[-1] if any(_products(numbers[:-1], numbers[-1], None, None)) else None


def _is_nearer(box: Box, head: Head, name: str) -> bool:
    """Whether a number is closer to another column than to the column with this name."""
    own = _distance(box, head.columns[name])
    named = (other for role, other in head.columns.items() if role not in {name, "description"})
    return any(_distance(box, other) < own for other in (*named, *head.others))


def _distance(box: Box, head: Box) -> float:
    middle = abs((box.left + box.right) - (head.left + head.right)) / 2
    return min(abs(box.left - head.left), abs(box.right - head.right), middle)


def _printed(page: PageRuns, region: set[int]) -> dict[Decimal, str]:
    """Map each amount outside the table to the role that its label names, such as total.

    The role is empty if the label is not the label of a sum.
    """
    found: dict[Decimal, str] = {}
    for one in page.every("amount"):
        if one.run.line in region or not is_money(page, one):
            continue
        near = page.before(one, "amount") or page.left_of(one, "amount", most=6) or page.above(one, "amount")
        read = classify(page, near) if near else None
        role = read[0] if read and read[0] in _SUMS - {"tax"} else ""
        value = Decimal(one.value)
        found[value] = role if role == "line_sum" else found.get(value) or role
    return found


def _leading(page: PageRuns, anchors: Sequence[Mention], head: Head) -> tuple[int, int]:
    """Count the rows at the start of the table that are clearly items, in two ways.

    The first count stops at the first row in which quantity times price is not the amount. The second stops at the
    first row with neither a quantity nor a price, because charges and taxes after the items have neither.
    """
    items = [Item() for _ in anchors]
    for item, anchor in zip(items, anchors, strict=True):
        _add_numbers(page, item, anchor, head)
    numbers = [bool({"quantity", "unit_price"} & item.cells.keys()) for item in items]
    return _first_false([item.has_product for item in items]), _first_false(numbers)


def _first_false(flags: Sequence[bool]) -> int:
    return next((index for index, flag in enumerate(flags) if not flag), len(flags))


def _cut(anchors: list[Mention], printed: dict[Decimal, str], leading: tuple[int, int]) -> tuple[list[Mention], bool]:
    """Decide how many of the rows are items. Returns the amounts of the items, and whether their sum is printed.

    - If the first rows add up to a printed sum, the rows after them may belong to other tables and are dropped.
    - If no sum is printed, the items end before the first row that has neither a quantity nor a price. If this is the
      first row, all rows are items.
    """
    sums = list(accumulate(Decimal(one.value) for one in anchors))
    roles = [next((role for one, role in printed.items() if abs(one - total) <= _CENTS), None) for total in sums]
    named = [count for count, role in enumerate(roles, 1) if role == "line_sum"]
    clear = [count for count in leading if count in named]
    for count in (*clear, *named, *leading, *range(len(sums), 0, -1)):
        role = roles[count - 1] if count else None
        if role or (role is not None and count == len(sums) > 1):
            return anchors[:count], True
    return anchors[: leading[1]] if leading[1] else anchors, False


def _tops(page: PageRuns, anchors: Sequence[Mention], head: Head, region: Sequence[Line]) -> list[tuple[int, float]]:
    """Return the page and the vertical position at which each row starts. A row starts at the top of its first line."""
    rows = [(anchor, [page.lines[anchor.run.line], *_beside(page, anchor, head)]) for anchor in anchors]
    taken = {line.number for _, lines in rows for line in lines}
    return [
        (anchor.run.page, min(line.box.top for line in (*lines, *_lines_above(anchor, head, region, taken))))
        for anchor, lines in rows
    ]


def _lines_above(anchor: Mention, head: Head, region: Sequence[Line], taken: set[int]) -> list[Line]:
    """Return the description lines above an amount that is vertically centred in its row.

    It is centred if about as many description lines are above it as below it.
    """
    number = anchor.run.line
    above = _text_lines([line for line in reversed(region) if line.number < number], anchor, head)
    below = _text_lines([line for line in region if line.number > number], anchor, head)
    others = {line.number for line in (*above, *below)} & taken  # lines of other rows, without a gap between the rows
    return above if above and below and not others and abs(len(above) - len(below)) <= 1 else []


def _text_lines(lines: Sequence[Line], anchor: Mention, head: Head) -> list[Line]:
    """Return the lines next to an amount that contain its description, up to the first line that is far away or has no
    description.
    """
    item = Item({"amount": _cell(anchor)})
    left, right = _description_span(head, item)
    found: list[Line] = []
    before = anchor.box
    for line in lines:
        words = _description_words(line, left, right, item)
        if line.page != anchor.run.page or not words:
            return found
        box = enclosing_box(word.box for word in words)
        if max(box.top - before.bottom, before.top - box.bottom) > _TIGHT * max(box.height, before.height):
            return found
        found.append(line)
        before = box
    return found


def _beside(page: PageRuns, anchor: Mention, head: Head | None = None) -> Iterator[Line]:
    """Yield the lines directly above and below an amount if they may contain other numbers of the same row."""
    own = page.lines[anchor.run.line]
    for number in (own.number - 1, own.number + 1):
        if not 0 <= number < len(page.lines):
            continue
        line = page.lines[number]
        distance = abs(line.box.middle - anchor.box.middle)
        if line.page == own.page and distance <= _BESIDE * anchor.box.height and _fits_beside(page, line, own, head):
            yield line


def _fits_beside(page: PageRuns, line: Line, own: Line, head: Head | None) -> bool:
    """Whether a line completes the line `own`: it contains the quantity or price that `own` does not have, and no
    amount.
    """
    if head is None:
        return not _has_money(page, line)
    column = head.columns["amount"]
    numbers = [one for index, run in enumerate(line.runs) for one in page.of_run("amount", run, index)]
    if any(is_money(page, one) and _distance(one.box, column) <= _NEAR_COLUMN for one in numbers):
        return False
    names = [name for name in ("quantity", "unit_price") if name in head.columns]
    return any(_distance(one.box, head.columns[name]) <= _NEAR_COLUMN for one in numbers for name in names) and not any(
        _distance(one.box, head.columns[name]) <= _NEAR_COLUMN
        for index, run in enumerate(own.runs)
        for one in page.of_run("amount", run, index)
        for name in names
    )


def _belongs(line: Line, top: tuple[int, float], follower: tuple[int, float] | None) -> bool:
    here = line.page, line.box.top
    return here >= (top[0], top[1] - 0.5) and (follower is None or here < (follower[0], follower[1] - 0.5))


def _cell(mention: Mention) -> Cell:
    return Cell(mention.value, mention.place)


def _add_numbers(page: PageRuns, item: Item, anchor: Mention, head: Head) -> None:
    lines = [page.lines[anchor.run.line], *_beside(page, anchor, head)]
    numbers = [
        one
        for line in lines
        for index, run in enumerate(line.runs)
        for one in page.of_run("amount", run, index)
        if one is not anchor and one.box.right <= anchor.box.left + 1
    ]
    if head.is_loose:
        quantity = price = None
    else:
        quantity, price = (_in_column(numbers, head, name) for name in ("quantity", "unit_price"))
    pair = (quantity, price) if quantity and price and _is_product(quantity, price, anchor) else None
    if pair is None:  # the pair nearest to the amount, because a description may contain numbers, too
        pairs = _products(numbers[::-1], anchor, quantity, price)
        pair = next((one for one in pairs if quantity or price or _is_ordered(*one, head)), None)
    if pair:
        quantity, price = pair
        item.has_product = True
    if quantity:
        item.cells["quantity"] = _cell(quantity)
    if price and price is not quantity:
        item.cells["unit_price"] = _cell(price)
    rate = _rate(lines, head)
    if rate:
        item.cells["tax_rate"] = rate


def _in_column(numbers: Sequence[Mention], head: Head, name: str) -> Mention | None:
    column = head.columns.get(name)
    if column is None:
        return None
    near = [
        one for one in numbers if _distance(one.box, column) <= _NEAR_COLUMN and not _is_nearer(one.box, head, name)
    ]
    return min(near, key=lambda one: _distance(one.box, column), default=None)


def _is_product(quantity: Mention, price: Mention, amount: Mention) -> bool:
    product, wanted = Decimal(quantity.value) * Decimal(price.value), Decimal(amount.value)
    # If the unit price is rounded, the product is inexact.
    digits = Decimal(10) ** -len(price.value.partition(".")[2])
    return abs(abs(product) - abs(wanted)) <= max(_CENTS, digits * abs(Decimal(quantity.value)) / 2)


def _products(
    numbers: Sequence[Mention], amount: Mention, quantity: Mention | None, price: Mention | None
) -> Iterator[tuple[Mention, Mention]]:
    """Yield each possible quantity and price whose product is the amount.

    If the quantity or price is already known, it is not changed.
    """
    for first in [quantity] if quantity else numbers:
        for second in [price] if price else numbers:
            same = first is second or Decimal(first.value) == 0
            if not same and is_price(second) and _is_product(first, second, amount):
                yield first, second


def _is_ordered(quantity: Mention, price: Mention, head: Head) -> bool:
    """Whether a quantity and a price are in the same order as their columns in the header.

    If the header does not show the order, the quantity must come first.
    """
    first, second = (head.columns.get(name) for name in ("quantity", "unit_price"))
    is_price_first = bool(first and second and second.left < first.left)
    return (price.box.left < quantity.box.left) == is_price_first


def is_price(mention: Mention) -> bool:
    return "." in mention.value


def _rate(lines: Sequence[Line], head: Head) -> Cell | None:
    """Return the percentage in the tax rate column or, if there is no such column, the only percentage in the row."""
    found: list[tuple[TextRun, Cell]] = []
    for line in lines:
        for run in line.runs:
            found += [(run, Cell(match[0], run.place(*match.span()))) for match in _PERCENT.finditer(run.text)]
    column = head.columns.get("tax_rate")
    if column:
        _, cell = min(found, key=lambda one: _distance(one[1].place.box, column), default=(None, None))
        return cell if cell and _distance(cell.place.box, column) <= _NEAR_COLUMN else None
    return found[0][1] if len(found) == 1 and len(found[0][0].words) <= _RATE_WORDS else None


# Descriptions


def _add_description(page: PageRuns, item: Item, anchor: Mention, lines: Sequence[Line], head: Head) -> None:
    """Add the text in the description column to an item.

    The description ends at a vertical gap, at the end of the page, or before a line such as "Colour: red".
    """
    left, right = _description_span(head, item)
    parts: list[list[Word]] = []
    before: Box | None = None
    for line in lines:
        words = _description_words(line, left, right, item)
        if not words or not (parts or any(letter.isalnum() for word in words for letter in word.text)):
            continue
        box = enclosing_box(word.box for word in words)
        text = " ".join(word.text for word in words)
        if before and (box.top - before.bottom > 0.9 * box.height or _KEY.match(text) or line.page != anchor.run.page):
            break
        parts.append(words)
        before = box
    if any(letter.isalpha() for words in parts for word in words for letter in word.text):
        joined = [word for words in parts for word in words]
        run = make_run(anchor.run.page, anchor.run.line, joined)
        item.cells["description"] = Cell(run.text, run.place(0, len(run.text)))
    del page


def _description_words(line: Line, left: float, right: float, item: Item) -> list[Word]:
    """Return the words of a line that belong to the description.

    In a line without numbers, the text may extend beyond the description column.
    """
    boxes = [cell.place.box for name, cell in item.cells.items() if name != "description"]
    if not any(line.box.top <= box.middle <= line.box.bottom for box in boxes):
        runs = [run for run in line.runs if left - 8 <= run.box.left <= right]
        return [word for run in runs[:1] for word in run.words]
    words = [word for word in line.words if left <= (word.box.left + word.box.right) / 2 <= right]
    return _without_numbers([word for word in words if word.box.left >= left - 8], item)


def _description_span(head: Head, item: Item) -> tuple[float, float]:
    own = head.columns.get("description") if not head.is_loose else None
    boxes = [item.cells[name].place.box for name in _NUMBER_COLUMNS if name in item.cells]
    if own is None:
        return 0.0, min(box.left for box in boxes)
    heads = [box for name, box in head.columns.items() if name != "description"] + list(head.others)
    left = max((box.right for box in heads if box.right <= own.left + 2), default=0.0)
    right = min((box.left for box in (*boxes, *heads) if box.left >= own.right - 2), default=own.right + 200)
    return left, right


def _without_numbers(words: Sequence[Word], item: Item) -> list[Word]:
    cells = [cell.place.box for name, cell in item.cells.items() if name != "description"]
    return [word for word in words if not any(_is_within(word.box, box) for box in cells)]


def _is_within(inner: Box, outer: Box) -> bool:
    return inner.left >= outer.left - 1 and inner.right <= outer.right + 1 and abs(inner.middle - outer.middle) < 2  # noqa: PLR2004
