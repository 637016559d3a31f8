"""The languages of the pages: which one a browser gets, and catalogues that are complete and fit their texts."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

import octavo.web
from octavo.core.formatting import (
    count_of,
    format_bytes,
    format_day,
    format_dollars,
    format_full_date,
    format_number,
    read_decimal,
    write_decimal,
)
from octavo.core.texts import (
    ENGLISH,
    FOLDER,
    LANGUAGES,
    Catalogue,
    Texts,
    catalogue_of,
    gettext,
    mark,
    texts_from,
    translate_sentences,
)
from octavo.web.http.languages import choose_language
from tests.support.page_texts import unmarked_in_template
from tools import make_catalogues

TRANSLATED = sorted(LANGUAGES.keys() - {ENGLISH})
WEB = Path(octavo.web.__file__).parent
PLACEHOLDER = re.compile(r"%\(\w+\)s|%[sd]|\{\w*\}|`[^`]+`|OCTAVO_\w+|https?://\S+")
TAG = re.compile(r"</?\w[^>]*>")


@pytest.mark.parametrize(
    ("chosen", "accepted", "language"),
    [
        (None, "", "en"),
        (None, "de-AT,de;q=0.9,en;q=0.8", "de"),
        (None, "nl,en;q=0.5,de;q=0.2", "en"),  # the first one that there is
        (None, "nl", "en"),
        (None, "de;q=0, fr", "fr"),  # refused
        (None, "en;q=0.1,fr;q=0.9", "fr"),
        (None, "zh-CN", "zh"),
        (None, "zh-Hant-TW,en", "en"),  # other characters
        (None, ";;q=,,x" * 200, "en"),
        ("fr", "de", "fr"),
        ("tlh", "de", "de"),
    ],
)
def test_a_page_is_in_the_chosen_language_or_one_that_the_browser_accepts(
    chosen: str | None, accepted: str, language: str
) -> None:
    assert choose_language(chosen, accepted) == language


def test_catalogues_have_all_texts_of_today_and_no_others() -> None:
    assert make_catalogues.main(check=True) == 0


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_catalogue_is_complete_and_keeps_placeholders_and_tags(language: str) -> None:
    with (FOLDER / language / "LC_MESSAGES" / "octavo.po").open("rb") as file:
        catalogue = read_po(file, locale=language)
    wrong: list[str] = []
    for one in catalogue:
        if not one.id:
            continue
        originals = [one.id] if isinstance(one.id, str) else list(one.id)
        strings = [one.string] if isinstance(one.string, str) else list(one.string or ())
        wanted = 1 if isinstance(one.id, str) else catalogue.num_plurals
        fits = len(strings) == wanted and all(
            text and sides(text) == sides(originals[0]) and parts(text) == parts(originals[-1]) for text in strings
        )
        wrong += [] if fits and not one.fuzzy else [f"{one.id}: {one.string}"]
    assert not wrong


# Spaces before punctuation at which a line could end, straight apostrophes and quotation marks, and informal address.
BAD_STYLE = {
    "de": r"\b(?:du|dein\w*|dir|dich)\b|\w'\w|\"",
    "es": r"\b(?:tú|tu|tus|vosotros)\b|[“”\"]",
    "fr": r"(?:^|[^\W\d_]|[)%»]) [;:!?»](?!\w)|« |\w'\w|\b(?:tu|ton|tes|toi)\b|\"",
    "zh": r"你|[\u4e00-\u9fff] ?[,;!?]|[\u4e00-\u9fff]\.(?=\s|$)|\"",
}


@pytest.mark.parametrize("language", TRANSLATED)
def test_a_catalogue_keeps_to_its_punctuation_and_form_of_address(language: str) -> None:
    with (FOLDER / language / "LC_MESSAGES" / "octavo.po").open("rb") as file:
        catalogue = read_po(file, locale=language)
    wrong: list[str] = []
    for one in catalogue:
        strings = [one.string] if isinstance(one.string, str) else list(one.string or ())
        plain = [PLACEHOLDER.sub("X", TAG.sub("", text)) for text in strings if one.id]
        wrong += [text for text in plain if re.search(BAD_STYLE[language], text)]
    assert not wrong


def parts(text: str) -> tuple[list[str], list[str]]:
    return sorted(found.rstrip(".,") for found in PLACEHOLDER.findall(text)), sorted(TAG.findall(text))


def sides(text: str) -> tuple[bool, bool]:
    """Whether a text that continues a sentence begins or ends with a space."""
    return text == text.lstrip() or text.lstrip()[:1] in ";:!?", text == text.rstrip()


def test_templates_have_no_texts_that_cannot_be_translated() -> None:
    # The API is described in English only.
    found = {
        path.name: texts
        for path in WEB.rglob("*.html")
        if path.name != "reference.html" and (texts := unmarked_in_template(path.read_text()))
    }
    assert not found


def test_a_text_without_a_mark_is_found() -> None:
    source = """<p class="a">Bare {{ _("marked") }}</p>
    <a title="Also bare" href="/x">{{ "Not marked" if x else _("Marked") }}</a>
    {% trans %}Marked <b>too</b>{% endtrans %}<code>octavo up</code>{{ ngettext("%(n)s page", "%(n)s pages", 3) }}
    <i>p. {{ page }}</i>{{ _("Filters%(on)s", on=", on" if x) }}{{ "{:,}".format(n) }}{{ "{:%-d %b}".format(day) }}
    {{ "{:%H:%M}".format(at) }}"""
    assert [text.strip("\ufffc ") for text in unmarked_in_template(source)] == [
        *("Bare", "Also bare", "p.", '"Not marked"', '", on"', '"{:,}"', '"{:%-d %b}"'),
    ]


@pytest.mark.parametrize(
    ("language", "text", "number"),
    [
        ("en", "1,000.5", "1000.5"),
        ("de", "1.000,50", "1000.50"),
        ("de", "1000,5", "1000.5"),
        ("de", "1000.5", "1000.5"),  # as programs write it
        ("fr", "1\u202f000,5", "1000.5"),
        ("fr", " 1 000,5 ", "1000.5"),
        ("de", "0,0", "0"),
        ("zh", "1,000.5", "1000.5"),
        ("de", "viel", None),
        ("en", "NaN", None),
        ("de", "Infinity", None),
    ],
)
def test_a_number_is_read_as_people_of_the_language_write_it(language: str, text: str, number: str | None) -> None:
    with texts_from(catalogue_of(language)):
        assert read_decimal(text) == (Decimal(number) if number else None)
        for value in (1000.5, 0.25, 1e15, 12.125):
            assert read_decimal(write_decimal(value)) == Decimal(repr(value))


def test_scripts_and_python_find_their_texts() -> None:
    texts = make_catalogues.collect()
    for text in (
        "Keyboard shortcuts",
        "Newest first",
        "Timed out.",
        "Skip to content",
        "Since %(date)s",
        "Read and change",
    ):
        assert text in texts
    assert ("%(number)s page", "%(number)s pages") in texts


def test_plural_forms_follow_the_language() -> None:
    wanted = {
        "de": ["0 Dokumente", "1 Dokument", "2 Dokumente"],
        "fr": ["0 document", "1 document", "2 documents"],  # French counts zero as one
        "es": ["0 documentos", "1 documento", "2 documentos"],
        "zh": ["0 个文档", "1 个文档", "2 个文档"],
    }
    for language in TRANSLATED:
        with texts_from(catalogue_of(language)):
            assert [count_of(number, "document") for number in range(3)] == wanted[language]


def test_numbers_and_dates_follow_the_language() -> None:
    now = datetime(2026, 11, 18, 12, tzinfo=UTC)
    with texts_from(catalogue_of("de")):
        assert format_number(12_345) == "12.345"
        assert format_bytes(1_200_000) == "1,1 MB"
        assert format_dollars(1234.5) == "1.234,50\N{NO-BREAK SPACE}$"
        assert format_dollars(0.0004) == "0,0004\N{NO-BREAK SPACE}$"
        assert format_full_date(date(2014, 4, 19)) == "19. April 2014"
        assert format_day(now - timedelta(minutes=5), now) == "vor 5 Min."
        assert format_day(now - timedelta(days=1), now) == "Gestern"
        assert format_day(now - timedelta(days=400), now) == "14. Okt. 2025"
    assert format_day(now - timedelta(days=400), now) == "14 Oct 2025"


def test_a_table_of_texts_is_translated_when_it_is_read() -> None:
    table = Texts({"all": mark("All"), "own": "Nobody translates this"})
    assert dict(table) == {"all": "All", "own": "Nobody translates this"}
    with texts_from(catalogue_of("de")):
        assert dict(table.items()) == {"all": "Alle", "own": "Nobody translates this"}
        assert (table.get("all"), table.get("none")) == ("Alle", None)
    assert gettext("") == ""


def test_a_stored_message_is_translated_as_far_as_it_is_known() -> None:
    stored = "The budget is used up. Work resumes when the budget is raised. Budget of document 7: $2.50."
    assert translate_sentences(stored) == stored
    with texts_from(catalogue_of("fr")):
        assert translate_sentences(stored).endswith("quand le budget est augmenté. Budget of document 7: $2.50.")
        assert translate_sentences("Nobody knows this.") == "Nobody knows this."


def test_english_needs_no_catalogue() -> None:
    assert catalogue_of("en") == catalogue_of("en")
    assert catalogue_of("en").is_english
    assert Catalogue().direction == "ltr"
