"""Figures, charts, formulas and captions on a page."""

from __future__ import annotations

from dataclasses import replace

from octavo.extract.extracted import Block, BlockKind, Box, Extracted, Figure, SourceType, add_captions, is_caption
from octavo.extract.pdf.content import PageContent, Shape, TextRun, Word
from octavo.extract.pdf.diagrams import with_diagrams, with_plots
from octavo.extract.pdf.figures import find_captioned, find_figures

WIDTH, HEIGHT = 595.0, 842.0
SENTENCE = "Amber barges leave the quay at dawn and carry gravel to the island"


def run(text: str, left: float, top: float, *, font: str = "Times", size: float = 10.0) -> TextRun:
    box = Box(left, top, left + 0.5 * size * len(text), top + size)
    return TextRun(box, text, size, font, bold=False, italic=False, rotation=0.0, tag=None, words=(Word(*box, text),))


def page(*runs: TextRun, shapes: tuple[Shape, ...] = (), lines: tuple[Box, ...] = (), number: int = 2) -> PageContent:
    return PageContent(number, WIDTH, HEIGHT, runs, shapes, lines)


def curve(left: float, top: float, size: float = 20.0) -> Shape:
    return Shape(Box(left, top, left + size, top + size), filled=True, stroked=False, curved=True, colour="ff336699")


def bar(left: float, top: float, width: float, height: float) -> Shape:
    return Shape(Box(left, top, left + width, top + height), True, False, False, "ff336699")


def kinds(found: PageContent, images: tuple[Box, ...] = ()) -> list[str]:
    return [area.kind for area in find_figures(found, images)]


def test_an_image_with_its_caption_is_a_figure() -> None:
    image = Box(100, 100, 300, 250)
    below = run("Figure 3: The lock at low water", 100, 258), run("seen from the northern quay.", 100, 270)
    (area,) = find_figures(page(*below, run(SENTENCE, 60, 320)), [image])
    assert (area.kind, area.box) == ("figure", image)
    assert area.caption == "Figure 3: The lock at low water seen from the northern quay."
    assert area.caption_box == Box(100, 258, 255, 280)


def test_an_image_without_a_caption_is_a_photo() -> None:
    assert kinds(page(run(SENTENCE, 60, 600)), (Box(100, 100, 300, 250),)) == ["photo"]


def test_small_images_and_backgrounds_are_no_figures() -> None:
    text = page(*(run(SENTENCE, 60, 100 + 14 * line) for line in range(30)))
    assert kinds(text, (Box(10, 10, 30, 30),)) == []
    assert kinds(text, (Box(0, 0, WIDTH, HEIGHT),)) == []
    assert kinds(text, (Box(50, 90, 550, 540),)) == []


def test_the_strips_of_an_image_are_one_figure() -> None:
    strips = tuple(Box(100, top, 400, top + 20) for top in range(100, 300, 20))
    (area,) = find_figures(page(), strips)
    assert area.box == Box(100, 100, 400, 300)


def test_a_title_on_an_image_is_a_cover_only_on_the_first_page() -> None:
    whole = (Box(0, 0, WIDTH, HEIGHT),)
    assert kinds(page(run("The harbour book", 100, 200, size=30), number=1), whole) == ["cover"]
    assert kinds(page(run("The harbour book", 100, 200, size=30), number=2), whole) == []


def test_axes_with_tick_marks_are_a_chart_whose_box_has_floats() -> None:
    """Whole numbers in a box once made the text of the whole document invalid."""
    rising = tuple(Box(100.2, 100.0 + 20 * step, 105.2, 100.0 + 20 * step) for step in range(6))
    across = tuple(Box(110.0 + 30 * step, 204.8, 110.0 + 30 * step, 209.8) for step in range(6))
    (area,) = with_plots(page(lines=(*rising, *across)), (), ())
    assert area.kind == "chart"
    assert area.box == Box(100, 100, 260, 210)
    assert [type(side) for side in area.box] == [float] * 4


def test_bars_with_numbers_are_a_chart() -> None:
    bars = tuple(bar(120 + 40 * number, 300 - 20 * number, 20, 40 + 20 * number) for number in range(6))
    labels = [run(str(number * 10), 125 + 40 * number, 345) for number in range(6)]
    assert kinds(page(*labels, shapes=bars)) == ["chart"]


def test_equal_steps_of_numbers_beside_two_axes_are_a_chart() -> None:
    upright = [run(text, 90, 100.0 + 40 * row) for row, text in enumerate(("1.5", "1.0", "0.5", "0.0"))]
    level = [run(text, 110.0 + 60 * column, 240) for column, text in enumerate(("2000", "2005", "2010", "2015"))]
    (area,) = find_figures(page(*upright, *level, shapes=tuple(bar(110, 100, 1, 130) for _ in range(5))), [])
    assert (area.kind, area.box) == ("chart", Box(90, 100, 310, 250))


def test_numbered_rows_of_a_table_are_no_chart() -> None:
    cells = [
        run(str(value), 90.0 + 60 * column, 100.0 + 20 * row)
        for row in range(5)
        for column, value in enumerate((row + 1, row + 2, row + 3, row + 4))
    ]
    assert kinds(page(*cells, shapes=tuple(bar(80, 95 + 20 * row, 240, 1) for row in range(6)))) == []


def test_shaded_cells_of_a_table_are_no_chart() -> None:
    cells = tuple(bar(100 + 60 * column, 100 + 20 * row, 55, 15) for column in range(4) for row in range(4))
    words = [run("cell", 105 + 60 * column, 102 + 20 * row) for column in range(4) for row in range(4)]
    assert kinds(page(*words, shapes=cells)) == []


def test_white_rectangles_under_a_form_are_no_figure() -> None:
    white = tuple(Shape(Box(10, y, 200, y + 40), True, False, False, "ffffffff") for y in range(0, 400, 50))
    assert kinds(page(run("Invoice", 20, 20), shapes=white)) == []


def test_curves_near_each_other_are_one_drawing_with_its_labels() -> None:
    curves = tuple(curve(100 + 25 * column, 100 + 25 * row) for column in range(4) for row in range(4))
    (area,) = find_figures(page(run("inlet", 203, 140), run(SENTENCE, 60, 400), shapes=curves), [])
    assert area.kind == "figure"
    assert (area.box.left, area.box.top, area.box.bottom) == (100, 100, 195)
    assert area.box.right >= 205


def test_a_displayed_formula_is_found_and_one_in_a_sentence_is_not() -> None:
    maths = [
        run("x", 200, 150, font="ABCDEF+CMMI10"),
        run("=", 210, 150, font="CMR10"),
        run("y", 220, 150, font="CMMI10"),
    ]
    around = [run(SENTENCE, 60, 110), run(SENTENCE, 60, 190)]
    (area,) = find_figures(page(*maths, *around), [])
    assert area.kind == "formula"
    assert area.box == Box(200, 150, 225, 160)
    assert kinds(page(run(f"{SENTENCE} where", 60, 150), run("x", 420, 150, font="CMMI10"), *around)) == []
    tight = [run(SENTENCE, 60, 138), run(SENTENCE, 60, 162)]
    assert kinds(page(*maths, *tight)) == []


def test_ten_thousand_shapes_take_no_longer_than_they_must() -> None:
    shapes = tuple(curve(number % 100 * 5.0, number // 100 * 8.0, 3.0) for number in range(10_000))
    assert len(find_figures(page(shapes=shapes), [])) <= 1


def test_captions_begin_with_a_word_and_a_number() -> None:
    for text in (
        "Figure 3",
        "Fig. 12: x",
        "Abb. 2",
        "Abbildung 7",
        "Tabelle 1",
        "図3",
        "Table A.1",
        "Рис. 4",
        "Figure BR1.",
    ):
        assert is_caption(text), text
    for text in ("Figures show that", "The table below", "Tabular data", "Figure skating"):
        assert not is_caption(text), text


def test_a_figure_has_the_caption_that_is_written_beside_it() -> None:
    texts = [
        "Before.",
        "![](figures/1.png)",
        "![](figures/2.png)",
        "Figure 1: Two gauges",
        "Behind.",
        "![](figures/3.png)",
    ]
    markdown = "\n\n".join(texts)
    blocks = tuple(
        Block(BlockKind.IMAGE if text.startswith("!") else BlockKind.PARAGRAPH, start, start + len(text), text)
        for text in texts
        for start in [markdown.index(text)]
    )
    figures = tuple(Figure(number, "photo", markdown.index(f"![](figures/{number}")) for number in (1, 2, 3))
    made = add_captions(Extracted(SourceType.DOCX, markdown, 5, blocks=blocks, figures=figures))
    assert [figure.caption for figure in made.figures] == ["Figure 1: Two gauges", "Figure 1: Two gauges", ""]


def test_bars_far_apart_whose_edges_are_lines_are_a_chart() -> None:
    bars = tuple(bar(120 + 60 * number, 300 - 20 * number, 20, 40 + 20 * number) for number in range(5))
    edges = tuple(Box(one.box.left, one.box.top, one.box.right, one.box.top) for one in bars)
    labels = [run(str(number * 10), 125 + 60 * number, 345) for number in range(5)]
    assert kinds(page(*labels, shapes=bars, lines=edges)) == ["chart"]


def test_a_frame_around_drawings_is_one_figure_with_its_labels() -> None:
    frame = Shape(Box(80, 80, 420, 300), filled=False, stroked=True, curved=True, colour=None)
    parts = tuple(curve(100 + 220 * side + 8 * step, 150) for side in (0, 1) for step in range(6))
    title = run("The nuts of a bridge and their names", 150, 90)
    (area,) = find_figures(page(title, shapes=(frame, *parts)), ())
    assert (area.box, area.framed) == (frame.box, True)


def test_a_frame_does_not_hold_its_caption() -> None:
    frame = Shape(Box(80, 80, 340, 300), filled=True, stroked=False, curved=False, colour="00000000")
    parts = tuple(curve(100 + 8 * step, 150, 60) for step in range(6))
    (area,) = find_figures(page(run("Figure 4: A chain", 90, 294), shapes=(frame, *parts)), ())
    assert area.framed
    assert area.box.bottom < 294


def test_a_frame_with_sentences_is_no_figure() -> None:
    frame = Shape(Box(50, 80, 500, 400), filled=True, stroked=False, curved=False, colour="ffddeeff")
    parts = tuple(curve(100 + 8 * step, 90, 60) for step in range(6))
    text = [run(SENTENCE, 60, 180 + 14 * line) for line in range(14)]
    (area,) = find_figures(page(*text, shapes=(frame, *parts)), ())
    assert not area.framed
    assert area.box.bottom < 180


def test_the_title_of_an_upright_axis_is_part_of_the_chart() -> None:
    parts = tuple(curve(120 + 8 * step, 200, 100) for step in range(6))
    (area,) = find_figures(page(shapes=parts), (), [Box(98, 220, 108, 290)])
    assert area.box.left == 98


def test_a_line_of_signs_with_an_equation_number_is_a_formula_in_any_font() -> None:
    lines = [run(SENTENCE, 60, 100), run("f(x) + g(x) > 0", 90, 130), run("(9.14)", 400, 130), run(SENTENCE, 60, 160)]
    assert kinds(page(*lines, shapes=tuple(curve(500 + step, 700, 4) for step in range(6)))) == ["formula"]


def test_a_name_with_a_number_in_brackets_is_no_formula() -> None:
    lines = [run(SENTENCE, 60, 100), run("Total", 90, 130), run("(9)", 400, 130), run(SENTENCE, 60, 160)]
    assert kinds(page(*lines, shapes=tuple(curve(500 + step, 700, 4) for step in range(6)))) == []


def test_what_is_drawn_above_a_caption_is_its_figure() -> None:
    frame = Shape(Box(60, 220, 300, 340), filled=False, stroked=True, curved=False, colour=None)
    inner = [Shape(Box(80 + 70 * at, 240, 130 + 70 * at, 300), False, True, False, None) for at in range(3)]
    labels = run("low water", 80, 310), run("the gates are open at noon", 160, 310)
    text, caption = run(SENTENCE, 60, 190), run("Figure 2: The lock", 60, 350)
    found = page(text, *labels, caption, run(SENTENCE, 330, 250), shapes=(frame, *inner))
    (area,) = find_captioned(found, (), ())
    assert (area.box, area.caption) == (frame.box, "Figure 2: The lock")
    assert not list(find_captioned(found, (), [frame.box]))


def test_a_reference_to_a_figure_is_no_caption() -> None:
    inner = tuple(Shape(Box(80 + 70 * at, 240, 130 + 70 * at, 300), False, True, False, None) for at in range(3))
    assert not list(find_captioned(page(run("Figure 2 shows the lock", 60, 350), shapes=inner), (), ()))


def test_the_strokes_of_the_rows_of_a_table_are_no_figure() -> None:
    rows = tuple(Shape(Box(60, 200 + 18 * at, 500, 220 + 18 * at), False, True, False, None) for at in range(8))
    cells = [run(f"{column}{row}", 80 + 60 * column, 205 + 18 * row) for row in range(8) for column in range(7)]
    assert kinds(page(*cells, shapes=rows)) == []


def node(text: str, left: float, top: float) -> tuple[Shape, TextRun]:
    """A framed box with a label."""
    frame = Shape(Box(left, top, left + 90, top + 30), filled=False, stroked=True, curved=True, colour=None)
    return frame, run(text, left + 5, top + 10)


def link(left: float, top: float, right: float, bottom: float) -> Shape:
    return Shape(Box(left, top, right, bottom), filled=False, stroked=True, curved=False, colour=None)


def tree(*more: TextRun) -> PageContent:
    nodes = node("Harbour", 250, 100), node("Quay", 150, 180), node("Lock", 350, 180)
    links = link(200, 130, 260, 172), link(330, 130, 380, 172)
    return page(*(label for _, label in nodes), *more, shapes=(*(frame for frame, _ in nodes), *links))


def test_boxes_that_lines_connect_are_one_figure() -> None:
    (area,) = with_diagrams(tree(run("yes", 178, 145)), ())
    assert (area.kind, area.framed) == ("figure", True)
    assert area.box == Box(150, 100, 440, 210)


def test_boxes_without_lines_and_boxes_between_sentences_are_no_diagram() -> None:
    drawn = tree()
    assert with_diagrams(replace(drawn, shapes=drawn.shapes[:3]), ()) == ()
    assert with_diagrams(tree(run(SENTENCE, 120, 150)), ()) == ()


def test_framed_cells_of_a_table_are_no_drawing() -> None:
    cells = [
        Shape(Box(left, top, left + 100, top + 20), filled=False, stroked=True, curved=False, colour=None)
        for top in range(100, 180, 20)
        for left in (60, 160, 260)
    ]
    labels = [run("1,250", cell.box.left + 10, cell.box.top + 5) for cell in cells]
    assert kinds(page(*labels, shapes=tuple(cells))) == []


def test_thick_lines_around_a_table_are_no_drawing() -> None:
    lines = [Box(60, top, 500, top + 4) for top in (100, 130, 160, 190)]
    lines += [Box(left, 100, left + 4, 294) for left in (60, 496)]
    shapes = tuple(Shape(box, filled=False, stroked=True, curved=False, colour=None) for box in lines)
    cells = [run("1,250", left, top) for left in (100, 200, 300) for top in (110, 140, 170)]
    assert kinds(page(*cells, shapes=shapes)) == []


def test_labels_that_only_lines_connect_belong_to_the_figure_above_its_caption() -> None:
    text = [run(SENTENCE, 60, 80), run(SENTENCE, 60, 92)]
    labels = [
        run("activateAllRows", 80, 140),
        run("loadEveryColumn", 260, 120),
        run("deactivateEveryRowAgain", 260, 160),
    ]
    links = tuple(
        Shape(Box(160, 125 + 10 * at, 255, 145 + 10 * at), filled=False, stroked=True, curved=False, colour=None)
        for at in range(4)
    )
    caption = run("Figure 14: Calls between the routines of this program", 80, 200)
    (area,) = find_captioned(page(*text, *labels, caption, run(SENTENCE, 60, 240), shapes=links), (), ())
    assert area.box == Box(80, 120, 375, 175)


def test_the_shaded_cells_of_a_table_in_many_parts_are_not_a_drawing() -> None:
    cells = [
        bar(100 + 80 * column + left, 100 + 30 * row, width, 30)
        for column in range(4)
        for row in range(2)
        for left, width in ((0, 5), (5, 70), (75, 5))
    ]
    words = [run("Ballots cast", 110 + 80 * column, 110 + 30 * row) for column in range(4) for row in range(2)]
    assert kinds(page(*words, shapes=tuple(cells))) == []


def test_the_title_of_an_axis_below_a_chart_belongs_to_the_chart() -> None:
    bars = tuple(bar(120 + 40 * number, 300 - 20 * number, 20, 40 + 20 * number) for number in range(6))
    numbers = [run(str(10 * number), 120 + 40 * number, 345) for number in range(6)]
    (area,) = find_figures(page(*numbers, run("Age group", 228, 375), run(SENTENCE, 60, 600), shapes=bars), ())
    assert area.box.bottom == 385


def test_a_framed_table_beside_a_picture_is_not_part_of_the_picture() -> None:
    frame = Shape(Box(300, 100, 520, 400), filled=False, stroked=True, curved=False, colour=None)
    rows = [run(text, left, 250 + 20 * row) for row in range(5) for left, text in ((310, "Licence"), (420, "free"))]
    (area,) = find_figures(page(*rows, run(SENTENCE, 60, 600), shapes=(frame,)), [Box(350, 110, 470, 230)])
    assert area.box == Box(350, 110, 470, 230)


def test_items_of_a_list_with_symbols_are_not_formulas() -> None:
    item, words = run("• i = 1 or j = 1", 80, 120, font="CMMI10"), run(SENTENCE, 60, 80)
    assert kinds(page(words, item, run(SENTENCE, 60, 160))) == []


def test_the_thick_sides_of_frames_around_code_are_not_figures() -> None:
    frames = [
        bar(left, top + down, width, height)
        for top in (100, 140, 180)
        for left, down, width, height in ((50, 0, 500, 6), (50, 14, 500, 6), (51, 1, 6, 18), (543, 1, 6, 18))
    ]
    shapes = tuple(shape._replace(filled=False, stroked=True, colour=None) for shape in frames)
    code = [run("$ make all", 60, top + 5, font="Courier") for top in (100, 140, 180)]
    assert kinds(page(*code, shapes=shapes)) == []
    assert kinds(page(*code, shapes=(*shapes, curve(200, 110), curve(240, 130), curve(280, 150)))) != []


def test_code_and_numbered_titles_with_a_mathematical_sign_are_no_formulas() -> None:
    code = (
        run("int64_t i", 60, 200, font="Courier"),
        run("=", 108, 200, font="CMSY10"),
        run("Ah[k];", 116, 200, font="Courier"),
    )
    title = run("4.22.2.2", 60, 300), run("\u223c", 106, 300, font="CMSY10"), run("CSphvicinity()", 112, 300)
    formula = run("x", 60, 400, font="CMMI10"), run("=", 68, 400, font="CMSY10"), run("y+z", 76, 400, font="CMMI10")
    assert kinds(page(*code, *title)) == []
    assert kinds(page(*formula)) == ["formula"]
