"""Texts in other markups, data files and captions are read for what they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from octavo.core.errors import BadInput, Empty, NotFound
from octavo.extract.detect import STORED_ONLY, Hints
from octavo.extract.extracted import Quality, SourceType
from octavo.extract.formats import data, known_processors, latex, markup, org, xml_documents
from octavo.extract.formats import text as text_formats
from tests.support.office import markdown, read

RST = """
======
Garden
======

:Author: Ann Bee

First *paragraph* with ``code``, a `link <https://example.org>`_ and a :ref:`role <target>`.

Walls
-----

- one
- two

  - inner

1. first
2. second

Example::

    x = 1

.. code-block:: python

    print(2)

.. note:: Mind the **step**.

.. toctree::

   hidden

===== =====
Name  Age
===== =====
Ann   5
===== =====

+------+-------+
| A    | B     |
+======+=======+
| long | cell  |
| text |       |
+------+-------+
"""


def test_restructured_text(tmp_path: Path) -> None:
    extracted = read(markup.PROCESSOR, tmp_path, RST.encode())
    assert extracted.markdown == (
        "# Garden\n\n**Author:** Ann Bee\n\n"
        "First *paragraph* with `code`, a [link](https://example.org) and a role.\n\n"
        "## Walls\n\n- one\n- two\n  - inner\n\n1. first\n2. second\n\nExample:\n\n```\nx = 1\n```\n\n"
        "```python\nprint(2)\n```\n\n> Mind the **step**.\n\n"
        "| Name | Age |\n| --- | --- |\n| Ann | 5 |\n\n| A | B |\n| --- | --- |\n| long text | cell |"
    )
    assert (extracted.metadata.title, extracted.metadata.author) == ("Garden", "Ann Bee")


ORG = """#+TITLE: Harvest
#+AUTHOR: Ann
* TODO Apples :fruit:
:PROPERTIES:
:ID: 5
:END:
Some *bold*, /slanted/ and =code= [[https://example.org][here]].
- a
  - b
1. c
#+BEGIN_SRC python
x = 1
#+END_SRC
| Kind | Count |
|------+-------|
| Cox  | 5     |
** Pears
# a comment
Words.
"""


def test_org(tmp_path: Path) -> None:
    extracted = read(org.ORG, tmp_path, ORG.encode())
    assert extracted.markdown == (
        "# Apples\n\nSome **bold**, *slanted* and `code` [here](https://example.org).\n\n- a\n  - b\n\n1. c\n\n"
        "```python\nx = 1\n```\n\n| Kind | Count |\n| --- | --- |\n| Cox | 5 |\n\n## Pears\n\nWords."
    )
    assert (extracted.metadata.title, extracted.metadata.author) == ("Harvest", "Ann")


ASCIIDOC = """= Guide
:author: Ann

Intro with *bold*, _slanted_, `code` and https://example.org[a link].

== Steps

. one
+
attached
. two
* a
** b

[source,ruby]
----
puts 1
----

NOTE: Careful.

[cols="1,1"]
|===
|A |B

|1
|2
|===

// hidden
term:: its meaning
"""


def test_asciidoc(tmp_path: Path) -> None:
    extracted = read(org.ASCIIDOC, tmp_path, ASCIIDOC.encode())
    assert extracted.markdown == (
        "# Guide\n\nIntro with **bold**, *slanted*, `code` and [a link](https://example.org).\n\n## Steps\n\n"
        "1. one\n\nattached\n\n2. two\n   - a\n     - b\n\n```ruby\nputs 1\n```\n\n> NOTE: Careful.\n\n"
        "| A | B |\n| --- | --- |\n| 1 | 2 |\n\n**term**\n\nits meaning"
    )


LATEX = r"""
\documentclass{article} % comment
\title{On Walls} \author{Ann \and Bob}
\begin{document}
\maketitle
\section{Caf\'e \& co}
Text with \textbf{bold}, \emph{slant}, $a_1 < b$ and 5\%~of ``it''.

\begin{itemize}
\item one
\begin{enumerate}
\item inner
\end{enumerate}
\item two
\end{itemize}
\begin{verbatim}
x % kept \here
\end{verbatim}
\begin{equation}
E = mc^2
\end{equation}
\begin{tabular}{lr}
\hline
A & B \\ \hline
1 & 2 \\
\end{tabular}
\subsection*{More}
See \href{https://example.org}{this}\footnote{A note.}.
\end{document}
"""


def test_latex(tmp_path: Path) -> None:
    extracted = read(latex.PROCESSOR, tmp_path, LATEX.encode())
    assert extracted.markdown == (
        "# On Walls\n\nAnn , Bob\n\n## Café & co\n\n"
        "Text with **bold**, *slant*, $a_1 < b$ and 5% of \u201cit\u201d.\n\n"
        "- one\n  1. inner\n- two\n\n```\nx % kept \\here\n```\n\n$$\nE = mc^2\n$$\n\n"
        "| A | B |\n| --- | --- |\n| 1 | 2 |\n\n### More\n\nSee [this](https://example.org) (A note.)."
    ).replace("Ann , Bob", extracted.metadata.author or "")
    assert (extracted.metadata.title, extracted.quality) == ("On Walls", Quality.FULL)


GRID = """\
+--------+---------+-----+
| Head   | Two     | C   |
+========+=========+=====+
| wide over both   | x   |
+--------+---------+-----+
| down   | a       | b   |
| more   +---------+-----+
|        | c       | d   |
+--------+---------+-----+
"""
GRID_READ = (
    "| Head | Two | C |\n| --- | --- | --- |\n| wide over both | wide over both | x |\n"
    "| down more | a | b |\n| down more | c | d |"
)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (GRID, GRID_READ),
        ("=====  =====  ===\n   Inputs     Out\n------------  ---\nA      B      C\n=====  =====  ===\n",
         "| Inputs | Inputs | Out |\n| --- | --- | --- |\n| A | B | C |"),
        ("See Python_, `the site`_ and other_.\n\n.. _Python: https://python.org\n.. _the site: https://x.org\n",
         "See [Python](https://python.org), [the site](https://x.org) and other."),
        ("Use :PEP:`287`, :sub:`x`, :func:`run` and :strong:`this`.", "Use PEP 287, x, `run` and **this**."),
        ("| One line\n  goes on\n| Two\n", "One line goes on  \nTwo"),
        ("A link__.\n\n__ https://x.org\n\nEnd.", "A link.\n\nEnd."),
    ],
)  # fmt: skip
def test_restructured_text_shows_tables_and_references(tmp_path: Path, source: str, expected: str) -> None:
    assert read(markup.PROCESSOR, tmp_path, source.encode()).markdown == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (r"\newcommand{\name}{Octo} We study \name{} and \name.", "We study Octo and Octo."),
        (r"\newcommand{\mark}[2][red]{\textcolor{#1}{#2}} A \mark{b} \mark[blue]{c}.", "A b c."),
        (r"\def\eg{e.g.} \newcommand\both[1]{\eg{} #1} Say \both{x}.", "Say e.g. x."),
        (r"\newcommand{\loop}{a \other} \newcommand{\other}{b \loop} End \bold{x}.", "End x."),
        (r"\pdfbookmark[1]{A}{b}\hypertarget{t}{Text} in \parbox{3cm}{a box}", "Text in a box"),
        (r"\SI{5}{\meter\per\second} and \texorpdfstring{one}{two}", "5 meter per second and one"),
        (r"\begin{theorem}[Main] It holds.\end{theorem}", "**Theorem (Main).** It holds."),
        (r"\begin{tikzpicture}\draw (0,0);\end{tikzpicture} After.", "*[Drawing]*\n\nAfter."),
        (r"\begin{equation}\label{eq:a} x \end{equation}", "$$\nx\n$$"),
        (
            r"\begin{tabular}{ll}\multicolumn{2}{c}{G} & Z \\ \multirow{2}{*}{A} & 1 & 2 \\ & 3 & 4 \end{tabular}",
            "| G | G | Z |\n| --- | --- | --- |\n| A | 1 | 2 |\n| A | 3 | 4 |",
        ),
    ],
)
def test_latex_shows_text_and_not_its_commands(tmp_path: Path, source: str, expected: str) -> None:
    document = f"\\begin{{document}}{source}\\end{{document}}"
    assert read(latex.PROCESSOR, tmp_path, document.encode()).markdown == expected


def test_latex_that_includes_other_files_is_partial(tmp_path: Path) -> None:
    extracted = read(latex.PROCESSOR, tmp_path, rb"\begin{document}Words \input{chapter}\end{document}")
    assert extracted.quality is Quality.PARTIAL
    assert "included files" in extracted.metadata.extra["reason"]


def notebook(*cells: object, **more: object) -> bytes:
    return json.dumps({"nbformat": 4, "metadata": {"kernelspec": {"language": "R"}}, "cells": cells, **more}).encode()


def test_notebooks_are_text_code_and_outputs(tmp_path: Path) -> None:
    cells = (
        {"cell_type": "markdown", "source": ["# Tides\n", "\n", "```\nopen"]},
        {
            "cell_type": "code",
            "source": "x <- 1",
            "outputs": [
                {"output_type": "stream", "text": ["\u001b[31m1\u001b[0m\n"]},
                {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": "<Figure>"}},
                {"output_type": "error", "ename": "E", "evalue": "bad"},
            ],
        },
        {"cell_type": "raw", "source": "raw"},
    )
    assert markdown(data.NOTEBOOK, tmp_path, notebook(*cells)) == (
        "# Tides\n\n```\nopen\n```\n\n```r\nx <- 1\n```\n\n```text\n1\n```\n\n![](figures/1.png)\n\n"
        "```text\nE: bad\n```\n\n```\nraw\n```"
    )


def test_pictures_of_notebooks_are_figures(tmp_path: Path) -> None:
    cells = (
        {
            "cell_type": "markdown",
            "source": "A ![map](attachment:m.png) and ![none](attachment:n.png)",
            "attachments": {"m.png": {"image/png": "bWFw"}},
        },
        {"cell_type": "code", "source": "plot()", "outputs": [{"data": {"image/png": ["cGxv\n", "dA==\n"]}}]},
        {"cell_type": "code", "source": "draw()", "outputs": [{"data": {"image/svg+xml": "<svg/>"}}]},
    )
    extracted = read(data.NOTEBOOK, tmp_path, notebook(*cells))
    assert "A ![map](figures/1.png) and ![none](attachment:n.png)" in extracted.markdown
    assert extracted.markdown.endswith("*[Picture]*")
    path = tmp_path / "object"
    assert [data.read_figure(path, one.member or "") for one in extracted.figures] == [b"map", b"plot"]
    for unknown in ("", "9:output:0", "1:output:5", "0:attachment:x", "x"):
        with pytest.raises(NotFound):
            data.read_figure(path, unknown)


@pytest.mark.parametrize("broken", [b'{"cells": [', b"[" * 100_000, b'{"cells": 5, "nbformat": 4}'])
def test_broken_notebooks_are_refused(tmp_path: Path, broken: bytes) -> None:
    with pytest.raises((BadInput, Empty)):
        read(data.NOTEBOOK, tmp_path, broken)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"a": 1.10, "b": null}, {"a": true}]', "| a | b |\n| --- | --- |\n| 1.10 |  |\n| true |  |"),
        ('{"a": 1}\n{"a": 2}\n', "| a |\n| --- |\n| 1 |\n| 2 |"),
        ('{"a": [1, 2]}', '```json\n{"a": [1, 2]}\n```'),
        ('[{"a": 1, "a": 2}]', '```json\n[{"a": 1, "a": 2}]\n```'),  # a table would lose a value
        ('{"a": ', '```json\n{"a": \n```'),
    ],
)
def test_json_is_a_table_or_code(tmp_path: Path, text: str, expected: str) -> None:
    assert markdown(data.PROCESSOR, tmp_path, text.encode()) == expected


def test_dense_json_is_indented_without_changing_a_value(tmp_path: Path) -> None:
    values = {f"name {number}": [1.5, "a, {b}"] for number in range(20)} | {"empty": []}
    text = json.dumps(values, separators=(",", ":"))
    shown = markdown(data.PROCESSOR, tmp_path, text.encode())
    lines = shown.split("\n")[1:-1]
    assert json.loads("\n".join(lines)) == values
    assert max(map(len, lines)) < 30


VTT = """WEBVTT

NOTE hidden

00:01.000 --> 00:04.000 align:left
<v Ann>Good <i>evening</i> &amp; welcome.

2
00:00:05.000 --> 00:01:09.000
<v Bob>Thanks.
"""


def captions(folder: Path, text: str, kind: SourceType = SourceType.VTT) -> tuple[str, list[float]]:
    path = folder / "object"
    path.write_text(text)
    extracted = text_formats.CAPTIONS.extract(path, Hints(kind))
    return extracted.markdown, [moment.seconds for moment in extracted.moments]


def test_captions_are_a_transcript_with_moments(tmp_path: Path) -> None:
    assert captions(tmp_path, VTT) == ("Ann: Good evening & welcome.\n\nBob: Thanks.", [1.0, 5.0])
    srt = "1\n00:00:01,500 --> 00:00:02,000\n{\\an8}One\ntwo.\n\n2\n00:00:03,000 --> 00:00:04,000\nThree.\n"
    assert captions(tmp_path, srt, SourceType.SRT) == ("One two. Three.", [1.5, 3.0])


def test_captions_that_scroll_are_not_repeated(tmp_path: Path) -> None:
    lines = [("a b", ""), ("a b", "c d"), ("c d", "e f.")]
    cues = "".join(f"00:0{n}.000 --> 00:0{n + 1}.000\n{one}\n{two}\n\n" for n, (one, two) in enumerate(lines, 1))
    assert captions(tmp_path, f"WEBVTT\n\n{cues}")[0] == "a b c d e f."


JATS = """<article xml:lang="en"><front><journal-meta><journal-title>J</journal-title></journal-meta><article-meta>
<title-group><article-title>On <italic>walls</italic></article-title></title-group>
<contrib-group><contrib contrib-type="author"><name><surname>Bee</surname><given-names>Ann</given-names></name>
</contrib></contrib-group>
<aff><label>1</label> Here</aff><pub-date><day>3</day><month>2</month><year>2020</year></pub-date>
<abstract><p>Short.</p></abstract></article-meta></front>
<body><sec><label>1.</label><title>Methods</title><p>We <bold>built</bold> it [<xref>1</xref>].</p>
<list list-type="order"><list-item><p>one</p></list-item></list>
<table-wrap><caption><p>Sizes</p></caption><table><tr><th>A</th></tr><tr><td>1</td></tr></table></table-wrap>
<sec><title>Inner</title><p>More.</p></sec></sec></body>
<back><ref-list><title>References</title><ref><label>1</label><mixed-citation><name><surname>Bee</surname>
<given-names>A</given-names></name>. <article-title>Walls</article-title></mixed-citation></ref></ref-list></back>
</article>"""


def xml(folder: Path, text: str, kind: SourceType) -> tuple[str, str | None]:
    path = folder / "object"
    path.write_text(text)
    extracted = xml_documents.PROCESSOR.extract(path, Hints(kind))
    return extracted.markdown, extracted.metadata.title


def test_articles(tmp_path: Path) -> None:
    shown, title = xml(tmp_path, JATS, SourceType.JATS)
    assert title == "On walls"
    assert shown == (
        "# On walls\n\nAnn Bee\n\n1 Here\n\n## Abstract\n\nShort.\n\n"
        "## 1. Methods\n\nWe **built** it [1].\n\n1. one\n\n"
        "Sizes\n\n| A |\n| --- |\n| 1 |\n\n### Inner\n\nMore.\n\n## References\n\n1 Bee A. Walls"
    )


def test_manuals(tmp_path: Path) -> None:
    text = """<book xmlns="http://docbook.org/ns/docbook" xmlns:xlink="http://www.w3.org/1999/xlink">
    <info><title>Manual</title></info>
    <chapter><title>Start</title><para>Run <command>make</command>,
    see <link xlink:href="https://example.org">this</link>.</para>
    <itemizedlist><listitem><para>one</para></listitem></itemizedlist><programlisting>x = 1
  y</programlisting><informaltable><tgroup><thead><row><entry>A</entry></row></thead><tbody><row><entry>1</entry></row>
    </tbody></tgroup></informaltable><note><para>Mind.</para></note></chapter></book>"""
    shown, title = xml(tmp_path, text, SourceType.DOCBOOK)
    assert title == "Manual"
    assert shown.startswith(
        "# Manual\n\n## Start\n\nRun `make`, see [this](https://example.org).\n\n- one\n\n```\nx = 1\n  y\n```"
    )
    assert "| A |\n| --- |\n| 1 |" in shown
    assert shown.endswith("> Mind.")


def test_fiction(tmp_path: Path) -> None:
    text = """<FictionBook><description><title-info><book-title>Sea</book-title><author><first-name>Ann</first-name>
    <last-name>Bee</last-name></author></title-info></description><body><title><p>Sea</p></title><section><title><p>One</p>
    </title><p>It <emphasis>rained</emphasis>.</p></section></body><binary id="a">AAAA</binary></FictionBook>"""
    assert xml(tmp_path, text, SourceType.FB2) == ("# Sea\n\n## One\n\nIt *rained*.", "Sea")


def test_other_xml_is_a_list_of_values_or_code(tmp_path: Path) -> None:
    text = '<?xml version="1.0"?><Order id="5"><Item><Name>A*b</Name></Item><Total currency="EUR">9</Total></Order>'
    assert xml(tmp_path, text, SourceType.XML)[0] == (
        "- **Order** (id: 5)\n  - **Item**\n    - **Name**: A\\*b\n  - **Total** (currency: EUR): 9"
    )
    for kept in ("<a>text <b>mixed</b> text</a>", "<a><b></a>", '<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>'):
        assert xml(tmp_path, kept, SourceType.XML)[0] == f"```xml\n{kept}\n```"


def test_footnotes_of_markup_languages_are_footnotes(tmp_path: Path) -> None:
    cases = (
        (markup.PROCESSOR, "Sea [1]_ and |it|.\n\n.. [1] Salty.\n.. |it| replace:: land\n"),
        (org.ORG, "Sea [fn:1] and land.\n# not shown\n[fn:1] Salty.\n"),
    )
    for processor, text in cases:
        assert markdown(processor, tmp_path, text.encode()) == "Sea [^1] and land.\n\n[^1]: Salty."


def test_a_table_written_as_a_list_is_a_table(tmp_path: Path) -> None:
    rows = "   * - Zone\n     - Price\n   * - Inner\n       city\n     - 3\n"
    text = f".. list-table:: Fares\n   :header-rows: 1\n\n{rows}\n#. a\n#. b\n"
    assert markdown(markup.PROCESSOR, tmp_path, text.encode()) == (
        "Fares\n\n| Zone | Price |\n| --- | --- |\n| Inner city | 3 |\n\n1. a\n2. b"
    )


def test_the_header_of_an_asciidoc_document_is_metadata(tmp_path: Path) -> None:
    text = "= Guide\nAnn Bee <ann@example.org>\nv1.0, 2024-01-02\n:toc:\n\n* bullet\nterm:: means <<start>>\n"
    extracted = read(org.ASCIIDOC, tmp_path, text.encode())
    assert extracted.markdown == "# Guide\n\n- bullet\n\n**term**\n\nmeans start"
    assert (extracted.metadata.author, extracted.metadata.date) == ("Ann Bee", "2024-01-02")


def test_articles_name_all_authors_and_their_addresses(tmp_path: Path) -> None:
    names = [f"Author{number} Longname" for number in range(60)]
    people = "".join(
        f'<contrib contrib-type="author"><name><surname>{name.split()[1]}</surname><given-names>{name.split()[0]}'
        '</given-names></name><xref ref-type="aff" rid="a1"/></contrib>'
        for name in names
    )
    text = (
        f"<article><front><article-meta><title-group><article-title>T</article-title></title-group><contrib-group>{people}"
        '</contrib-group><aff id="a1"><label>1</label><institution-wrap><institution-id>https://ror.org/1</institution-id>'
        '<institution>Sea School</institution></institution-wrap>, Kiel</aff><aff id="e1">Editor House</aff>'
        "</article-meta></front><body><p>5 km<sup>2</sup></p></body><back><ack><p>Thanks.</p></ack></back></article>"
    )
    assert xml(tmp_path, text, SourceType.JATS)[0] == (
        f"# T\n\n{', '.join(names)}\n\n1 Sea School, Kiel\n\n5 km2\n\n## Acknowledgments\n\nThanks."
    )


def test_files_that_are_only_stored_say_what_to_do() -> None:
    with pytest.raises(Exception, match="Convert the book to EPUB"):
        known_processors()[SourceType.MOBI]
    assert all(reason.count(".") >= 1 and len(reason) < 120 for reason in STORED_ONLY.values())
