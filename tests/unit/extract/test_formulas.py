"""Formulas are one line that people can read, and the reader gets MathML from it."""

from __future__ import annotations

import re

import pytest

from octavo.extract.office.formulas import from_mathml, from_office, to_markup
from octavo.extract.office.xml import parse
from octavo.web.markdown.formulas import to_mathml
from octavo.web.markdown.render import render_window

MATHML = "http://www.w3.org/1998/Math/MathML"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def mathml(content: str) -> str:
    return from_mathml(parse(f'<math xmlns="{MATHML}">{content}</math>'.encode()))


def office(content: str) -> str:
    return from_office(parse(f'<m:oMath xmlns:m="{OFFICE}">{content}</m:oMath>'.encode()))


def run(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("<mfrac><mi>a</mi><mi>b</mi></mfrac>", "a/b"),
        ("<mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><mi>b</mi></mfrac>", "(a + 1)/b"),
        ("<msup><mi>x</mi><mn>2</mn></msup><mo>=</mo><mn>2</mn><mi>y</mi>", "x^2 = 2 y"),
        ("<msub><mi>x</mi><mrow><mi>i</mi><mo>+</mo><mn>1</mn></mrow></msub>", "x[i + 1]"),
        ("<msqrt><mi>x</mi></msqrt><mroot><mi>y</mi><mn>3</mn></mroot>", "√x root(3, y)"),
        ("<munderover><mo>∑</mo><mi>i</mi><mi>n</mi></munderover><mi>i</mi>", "∑[i]^n i"),
        ("<mtable><mtr><mtd><mi>a</mi></mtd><mtd><mi>b</mi></mtd></mtr></mtable>", "matrix(a, b)"),
        ("<mover><mi>x</mi><mo>¯</mo></mover>", "overline(x)"),
        ("<mi>f</mi><mo>[</mo><mi>x</mi><mo>]</mo>", "f [x]"),
        ("<mfrac><msub><mi>x</mi><mi>i</mi></msub><mn>2</mn></mfrac>", "x[i]/2"),
        ("<msub><mrow><mo>[</mo><mi>A</mi><mo>]</mo></mrow><mi>i</mi></msub>", "[A][i]"),
        (
            "<msup><mrow><mfenced><mi>a</mi></mfenced><mfenced><mi>b</mi></mfenced></mrow><mn>2</mn></msup>",
            "((a)(b))^2",
        ),
        ("<mfenced><mi>a</mi><mi>b</mi></mfenced>", "(a, b)"),
        ("<mi>m</mi><mi>c</mi><mtext>if any</mtext>", 'm c "if any"'),
        ("<semantics><mi>a</mi><annotation>latex</annotation></semantics>", "a"),
        ("<mo>-</mo><mi>x</mi><mo>&lt;</mo><mi>y</mi>", "-x < y"),
    ],
)
def test_mathml_is_written_in_one_line(content: str, line: str) -> None:
    assert mathml(content) == line


SIGN = "<m:naryPr><m:chr m:val='∑'/></m:naryPr>"
SUM = f"<m:nary>{SIGN}<m:sub>{run('i=1')}</m:sub><m:sup>{run('n')}</m:sup><m:e>{run('i')}</m:e></m:nary>"


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (f"<m:f><m:num>{run('a+1')}</m:num><m:den>{run('b')}</m:den></m:f>", "(a + 1)/b"),
        (f"<m:sSup><m:e>{run('x')}</m:e><m:sup>{run('n')}</m:sup></m:sSup>{run('=y')}", "x^n = y"),
        (f"<m:d><m:dPr><m:begChr m:val='['/><m:endChr m:val=']'/></m:dPr><m:e>{run('x')}</m:e></m:d>", "[x]"),
        (SUM, "∑[i = 1]^n i"),
        (run("x=") + run("y") + run("-z"), "x = y - z"),
        (f"<m:func><m:fName>{run('sin')}</m:fName><m:e>{run('x')}</m:e></m:func>", "sin x"),
        (f"<m:rad><m:deg>{run('3')}</m:deg><m:e>{run('x')}</m:e></m:rad>", "root(3, x)"),
        (f"<m:bar><m:e>{run('x')}</m:e></m:bar>", "overline(x)"),
        (f"<m:acc><m:e>{run('x')}</m:e></m:acc>", "x̂"),
        ("<m:r><m:rPr><m:nor/></m:rPr><m:t>for all</m:t></m:r>", '"for all"'),
    ],
)
def test_office_math_is_written_in_one_line(content: str, line: str) -> None:
    assert office(content) == line


@pytest.mark.parametrize(
    ("line", "made"),
    [
        ("a/b", "<mfrac><mi>a</mi><mi>b</mi></mfrac>"),
        ("(a + 1)/2", "<mfrac><mrow><mi>a</mi><mo>+</mo><mn>1</mn></mrow><mn>2</mn></mfrac>"),
        ("x[i]^2", "<msubsup><mi>x</mi><mrow><mi>i</mi></mrow><mn>2</mn></msubsup>"),
        ("√(x)", "<msqrt><mrow><mi>x</mi></mrow></msqrt>"),
        ("∑[i] x", "<munder><mo>∑</mo><mrow><mi>i</mi></mrow></munder><mi>x</mi>"),
        ('"so that" x', "<mtext>so that</mtext><mi>x</mi>"),
        ("a &lt; b", "<mi>a</mi><mo>&lt;</mo><mi>b</mi>"),
        ("x_1", "<msub><mi>x</mi><mn>1</mn></msub>"),
        ("f [x]", "<mi>f</mi><mrow><mo>[</mo><mrow><mi>x</mi></mrow><mo>]</mo></mrow>"),
        ("overline(x)", "<mover><mrow><mi>x</mi></mrow><mo>¯</mo></mover>"),
    ],
)
def test_a_line_is_shown_as_mathml(line: str, made: str) -> None:
    assert to_mathml(line) == f"<math><mrow>{made}</mrow></math>"


@pytest.mark.parametrize("line", ["^", "/", "a/", "((((", "matrix(", "root(", "√", "x_", ")" * 50, "(" * 500])
def test_every_line_has_a_result(line: str) -> None:
    assert to_mathml(line).startswith("<math>")


def test_the_reader_shows_formulas_in_text_and_in_tables() -> None:
    (block,) = render_window(f"If {to_markup('x^2')} then")
    assert block.html == "<p>If <math><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math> then</p>"
    (table,) = render_window(f"| a |\n| - |\n| {to_markup('a/b', is_block=True)} |")
    assert '<math display="block"><mrow><mfrac>' in table.html


@pytest.mark.parametrize(
    "attack",
    [
        "<math><mtext><script>alert(1)</script></mtext></math>",
        '<math><mi onclick="alert(1)">a</mi></math>',
        '<math href="javascript:alert(1)">a</math>',
        "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>",
        '<math><annotation-xml encoding="text/html"><img src=x onerror=alert(1)></annotation-xml></math>',
        "<math>&lt;script&gt;alert(1)&lt;/script&gt;</math>",
        '<math><maction actiontype="statusline">a</maction></math>',
        '<math style="position:fixed"><mi xlink:href="javascript:alert(1)">a</mi></math>',
    ],
)
def test_a_formula_cannot_run_or_load_anything(attack: str) -> None:
    """Tags that a document writes inside of a formula are text; only our code writes MathML, without attributes."""
    html = "".join(block.html for block in render_window(attack))
    tags = re.findall(r"<[^>]*>", html)
    formula = {"math", "mrow", "mi", "mo", "mn", "mtext", "mfrac"}
    assert {re.sub(r"[</>]", "", tag) for tag in tags} <= formula | {"p", "table", "span", 'span class="picture"'}
