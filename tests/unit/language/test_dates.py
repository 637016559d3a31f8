"""Dates are read in the languages that are common, and never made up."""

from __future__ import annotations

import pytest

from octavo.language.findings import find_spans


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
    assert next((iso for iso, _, _ in find_spans(text)), None) == found


def test_a_date_that_means_two_days_in_english_tells_only_its_year() -> None:
    assert find_spans("Date: 03/04/2020", language="en") == [("2020", 6, 16)]
    assert find_spans("Date: 03/04/2020", language="fr") == [("2020-04-03", 6, 16)]
