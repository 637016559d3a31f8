"""Estimates the cost of model calls for a document before anything is sent. All functions are pure.

The constants were measured with a book of 500 pages and 250,000 words (docs/decisions/0021-texts-by-a-model.md). The
budget check before each call uses a different, higher estimate.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from math import ceil

from octavo.ai.calls import LOCAL, PAGE_TOKENS
from octavo.ai.faults import TokenUsage
from octavo.ai.models import Model, ModelChain, Prices, model_chain
from octavo.ai.tasks import CLASSIFY_DOCUMENT, CLEAN_MARKDOWN, ENRICH_CHUNKS, EXTRACT_PAGES
from octavo.ai.tasks.describe_documents import MAX_CHARACTERS
from octavo.core.settings import Settings
from octavo.owners import Caller
from octavo.records.account import CostEstimate, DocumentEstimate
from octavo.records.documents import Document

TOKENS_PER_WORD = 1.42
WORDS_PER_CHUNK = 385
# Output tokens for a title with summary and tags, for a chunk, for a segment, and for a consolidated answer.
TITLE_TOKENS, CHUNK_TOKENS, SEGMENT_TOKENS, ANSWER_TOKENS = 250, 186, 600, 1500
PAGES_PER_SEGMENT = 100
# Factors for pages and words that are read or written twice, because calls overlap.
READ_AGAIN, WRITTEN_AGAIN, CONTEXT_PAGES = 1.1, 1.16, 1.675
# A page of a PDF costs Gemini 258 tokens.
FILE_PAGE_TOKENS = {"gemini": 258}
# The maximum cost of judging the connections of one document; `connect` enforces it.
MOST_FOR_CONNECTIONS = Decimal("0.20")
CONNECTION_TASKS = ("judge_contradictions", "explain_bridges")
WORDS_PER_PAGE = 500


@dataclass(frozen=True, slots=True)
class DocumentSize:
    words: int
    pages: int

    @classmethod
    def of(cls, words: int | None, pages: int | None) -> DocumentSize:
        """Return the size of a document. If the word count is unknown, it is estimated from the page count."""
        return cls(words if words is not None else (pages or 0) * WORDS_PER_PAGE, pages or 0)

    @property
    def tokens(self) -> int:
        return round(self.words * TOKENS_PER_WORD)


class Estimator:
    """Estimates costs with the configured models. Work done by the `local` provider costs nothing."""

    def __init__(self, settings: Settings, *, is_offline: bool = False) -> None:
        local = Model(LOCAL)
        self._chain = ModelChain((local,), {}, local) if is_offline else model_chain(settings)
        self._prices = Prices.of(settings)

    def estimate(self, size: DocumentSize, prompts: int = 1) -> DocumentEstimate:
        return DocumentEstimate(
            describe=self._describe(size),
            clean=self._clean(size),
            pages=self._read_pages(size),
            connections=self._connections(),
            analysis=self._analyse(size, prompts),
        )

    def _describe(self, size: DocumentSize) -> CostEstimate:
        title = TokenUsage(min(size.tokens, MAX_CHARACTERS // 4), TITLE_TOKENS)
        chunks = TokenUsage(size.tokens, ceil(size.words / WORDS_PER_CHUNK) * CHUNK_TOKENS)
        parts = [
            (self._model(CLASSIFY_DOCUMENT.name), title),
            (self._model(ENRICH_CHUNKS.name), chunks),
            (self._chain.embedding, TokenUsage(size.tokens)),
        ]
        return self._sum(parts)

    def _clean(self, size: DocumentSize) -> CostEstimate:
        return self._sum([(self._model(CLEAN_MARKDOWN.name), TokenUsage(size.tokens, size.tokens))])

    def _read_pages(self, size: DocumentSize) -> CostEstimate:
        model = self._model(EXTRACT_PAGES.name)
        read = round(size.pages * READ_AGAIN * _page_tokens(model))
        return self._sum([(model, TokenUsage(read, round(size.tokens * WRITTEN_AGAIN)))])

    def _connections(self) -> CostEstimate:
        """Return the highest possible cost of judging a document's connections to other documents.

        The actual cost depends on how many similar chunks are found.
        """
        paid = [model for model in map(self._model, CONNECTION_TASKS) if model.provider != LOCAL]
        return CostEstimate(float(MOST_FOR_CONNECTIONS) if paid else 0.0, sorted({str(model) for model in paid}))

    def _analyse(self, size: DocumentSize, prompts: int) -> CostEstimate:
        segments = max(1, ceil(size.pages / PAGES_PER_SEGMENT))
        model = self._model("answer_segment")
        context = CONTEXT_PAGES if segments > 1 else 1.0
        read = size.pages * context * _page_tokens(model) if size.pages else size.tokens * context
        answers = TokenUsage(segments * SEGMENT_TOKENS, ANSWER_TOKENS) if segments > 1 else TokenUsage()
        parts = [
            (model, TokenUsage(round(read), segments * SEGMENT_TOKENS)),
            (self._model("consolidate_answers"), answers),
        ]
        return self._sum(parts * prompts)

    def _model(self, task: str) -> Model:
        """Return the first of a task's models that has a known price.

        Models without a known price are never called. The other models are called only if the first one fails.
        """
        known = (one for one in self._chain.of(task) if one.provider == LOCAL or self._prices.find(one))
        return next(known, Model(LOCAL))

    def _sum(self, parts: Iterable[tuple[Model, TokenUsage]]) -> CostEstimate:
        total, models = Decimal(0), set[str]()
        for model, usage in parts:
            if model.provider != LOCAL and (price := self._prices.find(model)):
                total += price.cost(usage)
                models.add(str(model))
        return CostEstimate(round(float(total), 4), sorted(models))


def _page_tokens(model: Model) -> int:
    return FILE_PAGE_TOKENS.get(model.provider, PAGE_TOKENS)


def estimate_size(settings: Settings, caller: Caller, size: DocumentSize, prompts: int = 1) -> DocumentEstimate:
    """Estimate the cost of model calls for a document of this size.

    For visitors without an account, the cost is 0 if the settings do not let them use models.
    """
    is_offline = caller.is_anonymous and not settings.anonymous_models
    return Estimator(settings, is_offline=is_offline).estimate(size, prompts)


def estimate_document(settings: Settings, caller: Caller, document: Document, prompts: int = 1) -> DocumentEstimate:
    return estimate_size(settings, caller, DocumentSize.of(document.word_count, document.page_count), prompts)
