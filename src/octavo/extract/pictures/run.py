"""What runs inside the sandbox: a page as a picture, such a picture with boxes on it, what a picture says of itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from octavo.extract.contract import Box, SourceType
from octavo.extract.pdf.pages import facts_to_json
from octavo.extract.pictures.fitting import make_jpeg, shrink_jpeg
from octavo.extract.pictures.pages import draw_page, mark_boxes, page_sizes, show_page
from octavo.extract.pictures.sheets import open_sheets

if TYPE_CHECKING:
    from octavo.sandbox import Task


def run_open(task: Task) -> None:
    task.output.write(facts_to_json(open_sheets(Path(task.input_path))))


def run_fit(task: Task) -> None:
    task.output.write(make_jpeg(Path(task.input_path)))


def run_shrink(task: Task) -> None:
    task.output.write(shrink_jpeg(Path(task.input_path), int(str(task.arguments["side"]))))


def run_show(task: Task) -> None:
    number, side = (int(str(task.arguments[name])) for name in ("number", "side"))
    source_type = SourceType(str(task.arguments["source_type"]))
    task.output.write(show_page(Path(task.input_path), source_type, number, side))


def run_draw(task: Task) -> None:
    number, width = (int(str(task.arguments[name])) for name in ("number", "width"))
    source_type = SourceType(str(task.arguments["source_type"]))
    task.output.write(draw_page(Path(task.input_path), source_type, number, width))


def run_sizes(task: Task) -> None:
    """Of the pages of a PDF in points; one that cannot be opened has none."""
    task.output.write(json.dumps(page_sizes(Path(task.input_path), int(str(task.arguments["most"])))).encode())


def run_mark(task: Task) -> None:
    """The input is a picture; the boxes come as one list of numbers, four for each."""
    sides = [float(side) for side in str(task.arguments["sides"]).split()]
    boxes = [Box(*sides[at : at + 4]) for at in range(0, len(sides), 4)]
    task.output.write(mark_boxes(task.input.read(), boxes, float(str(task.arguments["page_width"]))))
