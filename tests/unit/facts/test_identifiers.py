"""Identifiers with a form of their own are found; a checksum shows whether they are right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.facts.typed_values import find_marked, is_iban, is_isbn

IBAN = "DE02120300000000202051"
ISBN = "9783161484100"


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("IBAN DE02 1203 0000 0000 2020 51 BIC BYLADEM1001", "iban", IBAN),
        ("UStId DE 232 446 240", "vat_id", "DE232446240"),
        ("BTW NL8102.05.000.B01", "vat_id", "NL810205000B01"),
        ("https://doi.org/10.1145/3292500.3330701.", "doi", "10.1145/3292500.3330701"),
        ("ISBN 978-3-16-148410-0", "isbn", ISBN),
        ("Amtsgericht Hanau HRB 13302", "register_id", "HRB 13302"),
    ],
)
def test_an_identifier_is_found_in_its_canonical_form(text: str, name: str, value: str) -> None:
    assert [(one.name, one.value) for one in find_marked(text)] == [(name, value)]


def test_a_number_of_another_form_is_none() -> None:
    assert find_marked("DE12 1234 4321 9876 00, order 978-3-16-148410-1, 10.5/7") == []


@given(st.integers(4, len(IBAN) - 1), st.integers(1, 9))
def test_a_changed_digit_breaks_the_checksum_of_an_iban(at: int, by: int) -> None:
    changed = IBAN[:at] + str((int(IBAN[at]) + by) % 10) + IBAN[at + 1 :]
    assert is_iban(IBAN)
    assert not is_iban(changed)


@given(st.integers(0, len(ISBN) - 1), st.integers(1, 9))
def test_a_changed_digit_breaks_the_checksum_of_an_isbn(at: int, by: int) -> None:
    changed = ISBN[:at] + str((int(ISBN[at]) + by) % 10) + ISBN[at + 1 :]
    assert is_isbn(ISBN)
    assert not is_isbn(changed)
