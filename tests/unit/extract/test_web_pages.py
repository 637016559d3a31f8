"""Of a web page the article is kept, and what is around it is not. Of a file, everything is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from octavo.core.errors import Empty, Paywalled
from octavo.extract.detect import Hints
from octavo.extract.extracted import BlockKind, SourceType
from octavo.extract.formats import web

SENTENCE = "The river rises in the hills and goes down to the sea in many turns. "
ARTICLE = f"""<!doctype html>
<html lang="en-GB"><head><title>The River - A Site</title>
<meta name="author" content="Ann Author"><meta property="article:published_time" content="2024-03-05T10:00:00Z">
<meta property="og:title" content="The River"><meta property="og:site_name" content="A Site"></head>
<body><nav><ul><li><a href="/">Home</a></li><li><a href="/shop">Buy our things</a></li></ul></nav>
<main><article><h1>The River</h1><p>{SENTENCE * 6}</p><h2>Its <em>mouth</em></h2>
<p>{SENTENCE * 4} See <a href="/map">the map</a>.</p>
<table><tr><th>Year</th><th>Metres</th></tr><tr><td>1999</td><td>12</td></tr></table>
<ul><li>Fish live in it.</li><li>Boats go on it.</li></ul></article></main>
<footer>Cookies, imprint, newsletter.</footer><script>track()</script></body></html>"""


def test_an_article_keeps_its_structure_and_loses_what_is_around_it() -> None:
    extracted = web.from_html(ARTICLE, "https://example.org/river", SourceType.WEB)
    text = extracted.markdown
    assert extracted.source_type is SourceType.WEB
    assert text.count(SENTENCE.strip()) == 10
    assert "[the map](https://example.org/map)" in text
    assert "| 1999 | 12 |" in text
    assert "- Fish live in it." in text
    for gone in ("Buy our things", "newsletter", "track()"):
        assert gone not in text
    assert [(entry.level, entry.title) for entry in extracted.outline][-1] == (2, "Its mouth")
    assert {BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.TABLE, BlockKind.LIST} <= {
        block.kind for block in extracted.blocks
    }


DOCUMENT = """<!doctype html><html lang="de"><head><title>Rules</title><meta name="author" content="Ann"></head><body>
<nav><a href="/">Home</a></nav><header><h1>Ferry rules</h1></header><p hidden>Not shown</p><p>Short.</p>
<ul><li>Tickets<ul><li>Single</li><li>Return</li></ul></li><li>Dogs</li></ul>
<table><tr><th colspan="2">Zone</th><th rowspan="2">Price</th></tr><tr><td>Inner</td><td>East</td></tr></table>
<dl><dt>Purser</dt><dd>Takes complaints.</dd></dl><details><summary>More</summary><p>10<sup>5</sup> people</p></details>
<pre><code class="language-sh">cd /pier
ls</code></pre><form><label>Name <input value="Bob"></label><input type="checkbox" checked> Yes</form>
<table role="presentation"><tr><td><p>Only a frame.</p></td></tr></table>
<nav><h2>See also</h2><a href="https://x.org">Timetable</a></nav><script>track()</script></body></html>"""


def test_a_file_is_a_document_of_which_everything_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "ferry.html"
    file.write_text(DOCUMENT)
    extracted = web.extract(file, Hints(SourceType.HTML))
    assert extracted.source_type is SourceType.HTML
    assert extracted.markdown == (
        "# Ferry rules\n\nShort.\n\n- Tickets\n  - Single\n  - Return\n- Dogs\n\n"
        "| Zone | Zone | Price |\n| --- | --- | --- |\n| Inner | East | Price |\n\n"
        "Purser\n\nTakes complaints.\n\n**More**\n\n10^5 people\n\n```sh\ncd /pier\nls\n```\n\n"
        "Name Bob [x] Yes\n\nOnly a frame.\n\n## See also\n\n[Timetable](https://x.org)"
    )
    about = extracted.metadata
    assert (about.title, about.author, about.language) == ("Rules", "Ann", "de")


def test_a_page_says_who_wrote_it_and_when() -> None:
    about = web.from_html(ARTICLE).metadata
    assert (about.title, about.author, about.date, about.language) == ("The River", "Ann Author", "2024-03-05", "en")
    assert about.extra["site"] == "A Site"


@pytest.mark.parametrize(
    "html",
    [
        "<html><body></body></html>",
        "<html><body><div id='root'></div><script>app()</script></body></html>",
        "<html></html>",
        "<p></p>",
    ],
    ids=["no body", "made by a program", "nothing", "an empty paragraph"],
)
def test_a_page_without_an_article_says_what_to_do(html: str) -> None:
    with pytest.raises(Empty, match="paste it"):
        web.from_html(html)


@pytest.mark.parametrize(
    "mark",
    [
        '<script type="application/ld+json">{"@type": "NewsArticle", "isAccessibleForFree": false}</script>',
        '<script type="application/ld+json">{"isAccessibleForFree":"False"}</script>',
        '<meta property="article:content_tier" content="locked">',
    ],
    ids=["schema", "schema in words", "tier"],
)
def test_a_page_that_hides_its_text_is_told_from_a_short_one(mark: str) -> None:
    teaser = f"<html><head>{mark}</head><body><article><p>{SENTENCE * 3}</p></article></body></html>"
    with pytest.raises(Paywalled, match=r"web\.archive\.org.*archive\.today.*paste"):
        web.from_html(teaser)
    paragraphs = "".join(f"<p>In part {number} it is told that {SENTENCE * 4}</p>" for number in range(12))
    whole = f"<html><head>{mark}</head><body><article>{paragraphs}</article></body></html>"
    assert web.from_html(whole).word_count > web.TEASER_WORDS


@pytest.mark.parametrize(
    ("encoding", "content_type", "head"),
    [
        ("utf-8", "text/html; charset=utf-8", ""),
        ("iso-8859-1", 'text/html; charset="ISO-8859-1"', ""),
        ("cp1252", "text/html; charset=iso-8859-1", ""),
        ("windows-1251", "text/html", '<meta charset="windows-1251">'),
        ("shift_jis", "text/html", '<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">'),
        ("utf-8", "text/html; charset=no-such-thing", ""),
        ("utf-8-sig", "text/html; charset=iso-8859-1", ""),
        ("utf-16", "text/html", ""),
    ],
    ids=["said", "said, quoted", "called Latin", "written", "written long", "unknown", "marked", "wide"],
)
def test_letters_are_read_as_they_were_meant(encoding: str, content_type: str, head: str) -> None:
    letters = {"windows-1251": "\u043f\u0440\u0438\u0432\u0435\u0442", "shift_jis": "\u6771\u4eac"}
    letter = letters.get(encoding, "\u201cna\u00efve\u201d" if encoding != "iso-8859-1" else "na\u00efve")
    page = f"<html><head>{head}</head><body><p>{letter}</p></body></html>"
    assert letter in web.to_text(page.encode(encoding), content_type)


def test_deep_nesting_and_broken_markup_end_well(tmp_path: Path) -> None:
    for number, html in enumerate(("<div>" * 20_000 + "deep", "<p>a<b>" * 2_000, "<" * 50_000, "<!--" * 5_000)):
        file = tmp_path / f"{number}.html"
        file.write_text(f"<html><body>{html}")
        try:
            web.extract(file, Hints(SourceType.HTML))
        except Empty:
            continue


@settings(deadline=None, max_examples=100)  # machines that run tests are busy
@given(st.text("abpq<>&/\"'=: \t\n\x0b\x0c\u00e9\u3042", min_size=1, max_size=12))
@example("scr<script")
def test_whatever_a_tag_is_called_the_page_is_read(name: str) -> None:
    assert "Begin." in web.from_document(f"<body><p>Begin.</p><{name}>x</{name}><p>The end.</p></body>").markdown


def test_soft_hyphens_inside_words_are_removed() -> None:
    page = "<h1>Co&shy;operation</h1><p>A divi\u00added word, and 10&nbsp;kg.</p>"
    assert "Cooperation" in (text := web.from_document(page).markdown)
    assert "A divided word" in text
    article = ARTICLE.replace("The river rises", "The ri&shy;ver rises")
    assert "The river rises" in web.from_html(article, "https://example.org/river", SourceType.WEB).markdown


def test_lines_between_two_breaks_are_paragraphs_and_links_do_not_end_them() -> None:
    meets = 'It meets <a href="https://example.org/a">another river</a> in the plain.'
    lines = f"{SENTENCE * 3}{meets}<br><br>\n{SENTENCE * 3}<br><br>"
    html = f"<html><body><div class='article-body'>{lines}{lines}</div></body></html>"
    text = web.from_html(html, "https://example.org/x").markdown
    assert "It meets [another river](https://example.org/a) in the plain." in text
    assert text.count("\n\n") == 3


def test_links_that_run_scripts_are_only_text() -> None:
    html = ARTICLE.replace('<a href="/map">the map</a>', '<a href="javascript:void(0);">the map</a>')
    assert "See the map." in web.from_html(html, "https://example.org/x").markdown


def page_with(inside: str) -> str:
    paragraphs = "".join(f"<p>Part {number} of the river. {SENTENCE * 6}</p>" for number in range(4))
    return f"<html><body><article><h1>The River</h1>{paragraphs}{inside}</article></body></html>"


@pytest.mark.parametrize(
    "aside",
    [
        "<div hidden><p>Thanks! Check the messages in your mailbox now.</p></div>",
        '<div class="js-modal"><p>This site stores small files on your computer to know you.</p></div>',
        '<div id="signup"><p>Get the latest stories by mail every week.</p></div>',
        '<div role="dialog"><p>Do you want to know when a new story appears here?</p></div>',
    ],
    ids=["hidden", "modal", "signup", "dialog"],
)
def test_what_asks_the_reader_for_something_is_not_the_article(aside: str) -> None:
    with_it = web.from_html(page_with(aside), "https://www.x.org/river").markdown
    assert with_it == web.from_html(page_with(""), "https://www.x.org/river").markdown
    assert with_it.count(SENTENCE.strip()) == 24


def test_a_page_that_is_one_form_keeps_its_text() -> None:
    text = page_with("").replace("<article>", "<form><input><article>").replace("</article>", "</article></form>")
    assert web.from_html(text, "https://x.org/river").markdown.count(SENTENCE.strip()) == 24


@pytest.mark.parametrize(
    ("end", "is_kept"),
    [
        ("## More from us\n\n- The [Lake](https://x.org/a)\n- A [Pond](/b)\n- The [Sea](https://www.x.org/c)", False),
        ("**Related**\n\n[A long story about the lake](https://x.org/a)\n\nWrite to [Ann](mailto:ann@x.org)", False),
        ("## Sources\n\n- [The Lake](https://a.org)\n- [The Pond](https://b.org)\n- [The Sea](https://c.org)", True),
        ("[The lake, a story](http://[::1/a)", True),
        ("See also [the lake](https://x.org/a), which is much larger than the river and colder in summer.", True),
    ],
)
def test_links_to_the_same_site_below_an_article_are_left_out(end: str, *, is_kept: bool) -> None:
    article = SENTENCE * 20
    shown = web.without_links_at_end(f"{article}\n\n{end}", "https://www.x.org/river")
    assert shown == (f"{article}\n\n{end}" if is_kept else article)


def test_a_page_of_links_is_kept() -> None:
    links = "\n".join(f"- [Story {number}](https://x.org/{number})" for number in range(9))
    assert web.without_links_at_end(f"Our stories:\n\n{links}", "https://x.org/") == f"Our stories:\n\n{links}"


def test_names_of_boxes_are_not_the_beginning_of_the_article() -> None:
    assert web.without_additions("- ### Search\n- ### News\n\nThe text.", "The text.") == "The text."
