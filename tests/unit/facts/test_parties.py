"""The sender is found by labels, letterhead, footer and the line above the address; it is never the customer."""

from __future__ import annotations

import pytest

from octavo.facts.finding import read_document
from tests.support.sheets import sheet


def parties(text: str) -> tuple[str | None, str | None]:
    found = read_document([sheet(text)]).values
    return tuple(found[name].value if name in found else None for name in ("sender", "recipient"))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("seller", "buyer"),
    [("Sold by", "Bill to"), ("Verkäufer", "Käufer"), ("Vendeur", "Client"), ("Leverancier", "Klant")],
)
def test_labels_name_the_parties_in_several_languages(seller: str, buyer: str) -> None:
    text = f"{buyer}:\nQuay Holding Ltd\n1 Mill Lane\n\n{seller}:\nNorth Sea Timber Ltd\n2 Harbour Road\n"
    assert parties(text) == ("North Sea Timber Ltd", "Quay Holding Ltd")


def test_a_label_can_stand_before_its_name() -> None:
    assert parties("Sold By : WS Retail Services Pvt. Ltd.,\nBilling Address\nAnushrut Singh\n") == (
        "WS Retail Services Pvt. Ltd.",
        "Anushrut Singh",
    )


def test_the_line_above_the_address_is_the_sender() -> None:
    sender = "QualityHosting AG - Uferweg 40-42 - D-63571 Gelnhausen"
    text = f"{sender}\nVive Labs\n93B Sai Yu\n22999 Yuen Long\n\nRechnung 30064443"
    assert parties(text) == ("QualityHosting AG", "Vive Labs")


def test_a_slogan_and_a_bank_are_not_the_sender() -> None:
    text = (
        "Everything for your garden!\n\n\nGreen Thumb GmbH\nTel. 0123 4567\n12345 Gartenstadt\n\nInvoice 77\n"
        + "\n" * 30
        + "\nGreen Thumb GmbH   HRB 4711\nVolksbank Gartenstadt eG   IBAN DE02 1203 0000 0000 2020 51"
    )
    assert parties(text)[0] == "Green Thumb GmbH"


def test_the_vat_id_beside_the_customer_is_not_the_senders() -> None:
    text = (
        "Verkäufer:\nLieferant GmbH\nUSt-IdNr.: DE123456789\n\nKäufer:\nKunden AG\nUSt-IdNr.: DE136695976\n"
        "Rechnung Nr. 5 vom 05.03.2018\nTotal 5,00 EUR"
    )
    found = read_document([sheet(text)]).values["vat_id"]
    assert found.value == "DE123456789"
