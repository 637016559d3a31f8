"""The document's day is found where it is written, in the languages that are common, and never made up."""

from __future__ import annotations

import pytest

from octavo.language.dates import find_date


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Minutes of 2024-03-05", "2024-03-05"),
        ("5 March 2024", "2024-03-05"),
        ("5th of March, 2024", "2024-03-05"),
        ("March 5, 2024", "2024-03-05"),
        ("Mar. 5 2024", "2024-03-05"),
        ("Berlin, den 5. März 2024", "2024-03-05"),
        ("Facture n°562 du 02 Juillet 2015", "2015-07-02"),
        ("5 de mayo de 2021", "2021-05-05"),
        ("05.03.2024", "2024-03-05"),
        ("31/12/2023", "2023-12-31"),
        ("12/31/2023", "2023-12-31"),
        ("September 2015", "2015-09"),
        ("Copyright © 2015 by the author", "2015"),
        ("31 February 2020", "2020-02"),  # there is no such day
        ("99/99/2020", None),
        ("version 1.2.2020.4 of 12345-01-02", None),
        ("call 2020-2021", None),
        ("", None),
    ],
)
def test_dates_are_read(text: str, found: str | None) -> None:
    assert find_date(text) == found


def test_a_date_that_means_two_days_in_english_tells_only_its_year() -> None:
    assert find_date("Date: 03/04/2020", language="en") == "2020"
    assert find_date("Date : 03/04/2020", language="fr") == "2020-04-03"


def test_a_labelled_date_comes_first() -> None:
    text = "Order date: 15-10-2015\nInvoice date: 20-10-2015\nSeen on 1 January 2016"
    assert find_date(text) == "2015-10-20"


def test_what_the_file_says_comes_before_a_date_without_label() -> None:
    assert find_date("The war began on 1 September 1939.", claimed="2020-05-06") == "2020-05-06"
    assert find_date("Published 1 September 1939.", claimed="2020-05-06") == "1939-09-01"


@pytest.mark.parametrize("before", ["Due date:", "Payable until", "born", "Fällig bis", "expires on"])
def test_dates_of_other_things_are_not_the_documents(before: str) -> None:
    assert find_date(f"{before} 5 March 2024. Written on 1 March 2024.") == "2024-03-01"
