"""Citations of pages, as the answers of analyses contain them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from octavo.language.insights import Output, Share

LongText = Annotated[str, StringConstraints(strip_whitespace=True, max_length=20_000)]
QuoteText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


class PageCitation(Output):
    """`page` is the number used in the request; `quote` is verbatim; `relevance` is its weight for the answer."""

    page: Annotated[int, Field(ge=1)]
    quote: QuoteText
    relevance: Share
