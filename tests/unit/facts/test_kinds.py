"""Documents are told apart by what they say of themselves and by their form, in several languages."""

from __future__ import annotations

import pytest

from octavo.facts.fact_source import FactSource
from octavo.facts.kinds import find_kind
from octavo.facts.titles import find_title

DOCUMENTS = {
    "receipt": """CORNER STORE
12 High Street
Receipt No 4711
2 x Milk 2.40
1 x Bread 3.10
TOTAL 5.50
Cash 10.00
Change due 4.50
Thank you for shopping with us""",
    "contract": """# Lease of a crane

This agreement is made between the Harbour Board (hereinafter the lessor) and Reed Lifting Ltd (the lessee).

The notice period is 30 days. Either party may terminate it. The governing law is that of Denmark.

Signed by the parties""",
    "letter": """Lower Farm, Lindbeck
14 October 2024

Dear Sir or Madam,

I have farmed below the moor for thirty-four years.

Yours faithfully,

Edith Harrow""",
    "bank_statement": """Sparbank Nord
Kontoauszug Nr. 3/2023
erstellt am 31.05.2023 Blatt 1 von 2
IBAN: DE02 1203 0000 0000 2020 51
Bu-Tag Wert Vorgang
alter Kontostand vom 28.04.2023 6.313,44 H
03.05. 30.04. Storno Abschluss 13,44 S
04.05. 04.05. Überweisungsgutschr. 15.200,00 H
neuer Kontostand vom 31.05.2023 21.500,00 H""",
    "payslip": """Bulletin de paie
Employeur: Atelier Nord SARL
Période du 01/03/2024 au 31/03/2024
Salaire brut 2 450,00
Cotisations salariales 540,12
Net à payer 1 909,88""",
    "form": """Anmeldung zum Sommerlager

Bitte in Druckschrift ausfüllen

Vorname: ______________________
Nachname: _____________________
Geburtsdatum: _________________

☐ Vegetarisch  ☐ Allergien

Unterschrift: _________________""",
    "certificate": """Certificate of Completion

This is to certify that

Ada Lovelace

has successfully completed the course

First aid at work

Issued on 3 May 2024 by the Harbour School""",
    "report": """# Water in the moor: annual report 2023

## Executive summary

This report presents the readings of eight tubes.

Table 1: Mean level per quarter

## Recommendations

Two dams should get a gate.""",
    "paper": """# On the settling of fine clay

I. Lindqvist and R. Osei

## Abstract

We measured how fast clay settles [1, 2]. This paper shows that flocs form within minutes.

## References

[1] Owen et al. 1971. Journal of Clay.""",
    "manual": """# Handbuch der Pumpe

## Installation

1. Schließen Sie den Schlauch an.

Achtung: Das Gerät darf nicht trocken laufen.

## Troubleshooting""",
    "mail": """From: Tom Reed <tom@example.org>
To: Lena Fuchs <lena@example.org>
Subject: The crane
Date: Mon, 2 Mar 2026 09:31

We need 90 days, not 30.""",
    "chat": """[12.03.24, 10:01] Anna: Are you coming?
[12.03.24, 10:02] Ben: In ten minutes.
[12.03.24, 10:02] Anna: Bring the key, please.
[12.03.24, 10:05] Ben: I have it.""",
    "notes": """Meeting notes, harbour project

Attendees: Lena, Tom

- Crane arrives in May
- Tom asks about the deposit

Action items
- [ ] Lena writes to the board""",
    "code": """import sys

def main():
    total = 0
    for line in sys.stdin:
        total += int(line)
    print(total)

main()""",
    "article": "# How a bog keeps its rain\n\n"
    + "A raised bog is fed by nothing but the sky, and it has to make that rain last. " * 20,
    "other": "4711",
}


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_kinds(kind: str) -> None:
    text = DOCUMENTS[kind]
    source = FactSource(markdown=text, source_type="text", word_count=len(text.split()))
    title = find_title(source)
    assert find_kind(source, title.text if title else None).kind == kind


@pytest.mark.parametrize(
    ("source_type", "words", "kind"),
    [
        ("eml", 20, "mail"),
        ("pptx", 20, "slides"),
        ("xls", 20, "spreadsheet"),
        ("epub", 900, "book"),
        ("image", 3, "photo"),
    ],
)
def test_some_formats_are_of_one_kind(source_type: str, words: int, kind: str) -> None:
    assert find_kind(FactSource(source_type=source_type, word_count=words), None).kind == kind


def test_a_text_about_bank_statements_is_not_one() -> None:
    text = (
        "# Bank Statement\n\n" + "The closing balance of a statement shows what is left after all transactions. " * 20
    )
    source = FactSource(markdown=text, source_type="markdown", word_count=300)
    assert find_kind(source, "Bank Statement").kind == "article"
