"""What the book of `benchmarks.book` costs with models that are paid for, by the ledger, through the running product.

`python -m benchmarks.cost [PAGES] [plain|clean|pages]`. A provider of ours speaks as Gemini does and bills four
characters as a token, as Google says of English, and 258 tokens for a page that it is shown. Its descriptions are those
that `octavo.language` makes of the same passages, so they are as long as the form asks for. Prices are those of
gemini-2.5-flash and gemini-embedding-001. The ledger must have what was billed, to the last digit.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Mapping
from decimal import Decimal

import psycopg

from benchmarks.book import PAGES, WORDS_A_PAGE, wait_for, write_book
from benchmarks.uploads import Client, sign_in
from octavo.ai.models import Prices
from octavo.ai.tasks.describe_documents import classify_offline, describe_offline
from octavo.core.types import Extraction
from octavo.database.embedded import DataFolder, EmbeddedPostgres
from octavo.language.insights import ChunkText, DocumentSource
from tests.support.fake_ai import Asked, FakeGemini
from tests.support.fake_ai.server import SECRET, Bill
from tests.support.instance import instance_in
from tests.support.pdf import read_pdf
from tests.support.postgres import open_folder

GOAL = Decimal("0.60")
TOKENS_A_PAGE = 258
QUOTED = re.compile(
    r"<(?P<name>[a-z]+(?:-\d+)?)-(?P<hash>[0-9a-f]{16})>\n(?P<text>.*?)\n</(?P=name)-(?P=hash)>", re.DOTALL
)
SUMS = """
    SELECT purpose, count(*), sum(tokens_in), sum(tokens_out), sum(cost_usd)
    FROM ai_calls GROUP BY purpose ORDER BY 1"""
UNFINISHED = "SELECT FROM jobs WHERE status NOT IN ('complete', 'cancelled')"


class Billing(FakeGemini):
    """`pages` are the texts of the book, which it reads from the pages that it is shown."""

    pages: Mapping[int, str]

    def clear(self) -> None:
        super().clear()
        self.answer = self._answer

    def _answer(self, asked: Asked) -> str:
        quoted = [found["text"] for found in QUOTED.finditer(asked.text)]
        if asked.files:
            first, *rest = map(int, re.findall(r"\d+", asked.text.partition("Their numbers are")[2]))
            numbers = range(first, (rest or [first])[0] + 1)
            return "\n\n".join(f"<!-- page {number} -->\n\n{self.pages[number]}" for number in numbers)
        if asked.schema is None:
            return quoted[0]
        passages = [ChunkText(text) for text in quoted]
        if "chunks" in asked.schema["properties"]:
            return describe_offline(passages).model_dump_json()
        return classify_offline(DocumentSource(passages)).model_dump_json()

    def charge(self, model: str, read: int, written: int = 0) -> Bill:
        """Pages that were shown in the question that is just answered are read, too."""
        asked = self.asked[-1] if self.asked and written else None
        shown = re.search(r"The file has (\d+) pages", asked.text) if asked else None
        return super().charge(model, read + (TOKENS_A_PAGE * int(shown[1]) if shown else 0), written)


def main(pages: int = PAGES, extraction: str = Extraction.PLAIN) -> int:
    book = write_book(pages)
    print(f"{pages} pages, {pages * WORDS_A_PAGE:,} words, extraction {extraction}")
    with Billing() as gemini, open_folder() as folder:
        if extraction == Extraction.PAGES:
            (folder / "book.pdf").write_bytes(book)
            read = read_pdf(folder / "book.pdf")
            gemini.pages = {page.number: read.markdown[page.start : page.end] for page in read.pages}
        settings = {"providers": "gemini", "gemini_key": SECRET, "gemini_url": gemini.url, "document_budget": 10}
        with instance_in(folder, workers=1, **settings) as instance:
            instance.start()
            client = Client(instance, sign_in(instance))
            address = f"/api/v1/documents?extraction={extraction}"
            made = client.call("POST", address, [book], x_upload_filename="book.pdf")
            wait_for(client, str(made["document_id"]))
            info = EmbeddedPostgres(DataFolder(instance.data)).connection_info()
            with psycopg.connect(info, autocommit=True) as connection:
                while connection.execute(UNFINISHED.encode()).fetchone():  # vectors of its tags are a job of their own
                    time.sleep(0.1)
                rows = connection.execute(SUMS.encode()).fetchall()
    total = sum((row[4] for row in rows), start=Decimal(0))
    print(f"{'':20} {'calls':>6} {'read':>10} {'written':>10} {'USD':>9}")
    for purpose, calls, read, written, cost in rows:
        print(f"{purpose:20} {calls:6} {read:10,} {written:10,} {cost:9.4f}")
    print(f"{'all':20} {'':6} {'':10} {'':10} {total:9.4f}")
    if total != billed(gemini):
        print(f"the provider billed {billed(gemini)}, the ledger has {total}")
        return 1
    return 0 if total <= GOAL or extraction != Extraction.PLAIN else 1


def billed(gemini: FakeGemini) -> Decimal:
    prices = Prices()
    found = ((prices.find("gemini", bill.model), bill) for bill in gemini.bills)
    costs = (price.input * bill.read + price.output * bill.written for price, bill in found)
    return sum(costs, start=Decimal(0)) / 1_000_000


if __name__ == "__main__":
    sys.exit(main(*(int(one) if one.isdecimal() else one for one in sys.argv[1:])))  # pyright: ignore[reportArgumentType]
