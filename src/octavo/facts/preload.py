"""Fills the caches that are used to find facts, by running `find_facts` on two short documents.

The parent process of a sandbox imports this module, and its child processes inherit the vocabulary, the compiled
patterns and the filled caches. Otherwise, every child process would load them from files, which takes longer than
finding the facts of most documents.
"""

from __future__ import annotations

from octavo.facts.fact_source import FactSource, FileMetadata, Heading
from octavo.facts.finding import sheets_of_text
from octavo.facts.sheet import find_facts

_PAPER = """# On the settling of clay

Ada Lovelace and I. Osei

3 March 2021

## Abstract

We measured how fast clay settles in water from twelve stations, and compare it with earlier work.
"""
_INVOICE = """Hansen GmbH
Invoice no: A-17
Date: 15 August 2024
Tea 2 5.00 10.00
Net: 10.00
VAT: 2.50
Total: 12.50 EUR
"""


def _load() -> None:
    headings = (Heading("On the settling of clay", 1),)
    # The language is passed, because it is detected outside the sandbox: the detector would double a child's memory.
    about = FileMetadata(author="Ada Lovelace")
    find_facts(FactSource((), _PAPER, "", headings, "clay.md", about, "markdown", language="en"))
    find_facts(FactSource(tuple(sheets_of_text(_INVOICE)), _INVOICE, source_type="pdf", language="en", word_count=20))


_load()
