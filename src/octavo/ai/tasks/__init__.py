"""The tasks for models. Each task has its code in a module of this package, a prompt in `prompts/`, and an entry in
`TASKS`.
"""

from octavo.ai.tasks.answer_question import ANSWER_QUESTION
from octavo.ai.tasks.answer_segment import ANSWER_SEGMENT
from octavo.ai.tasks.classify_document import CLASSIFY_DOCUMENT, CLASSIFY_IMAGE, ImageToClassify
from octavo.ai.tasks.clean_markdown import CLEAN_MARKDOWN
from octavo.ai.tasks.consolidate_answers import CONSOLIDATE_ANSWERS
from octavo.ai.tasks.enrich_chunks import ENRICH_CHUNKS, ChunkInsights
from octavo.ai.tasks.explain_bridges import EXPLAIN_BRIDGES
from octavo.ai.tasks.extract_fields import EXTRACT_FIELDS, FieldsToFind, FieldToFind
from octavo.ai.tasks.extract_pages import EXTRACT_PAGES, PagesToRead
from octavo.ai.tasks.judge_contradictions import JUDGE_CONTRADICTIONS
from octavo.ai.tasks.rewrite_question import REWRITE_QUESTION
from octavo.ai.tasks.task import MarkdownText, Task, Tasks

TASKS = Tasks(
    ANSWER_QUESTION,
    ANSWER_SEGMENT,
    CONSOLIDATE_ANSWERS,
    CLASSIFY_DOCUMENT,
    CLASSIFY_IMAGE,
    CLEAN_MARKDOWN,
    ENRICH_CHUNKS,
    EXTRACT_FIELDS,
    EXTRACT_PAGES,
    EXPLAIN_BRIDGES,
    JUDGE_CONTRADICTIONS,
    REWRITE_QUESTION,
)

__all__ = [
    "ANSWER_QUESTION",
    "ANSWER_SEGMENT",
    "CLASSIFY_DOCUMENT",
    "CLASSIFY_IMAGE",
    "CLEAN_MARKDOWN",
    "CONSOLIDATE_ANSWERS",
    "ENRICH_CHUNKS",
    "EXPLAIN_BRIDGES",
    "EXTRACT_FIELDS",
    "EXTRACT_PAGES",
    "JUDGE_CONTRADICTIONS",
    "REWRITE_QUESTION",
    "TASKS",
    "ChunkInsights",
    "FieldToFind",
    "FieldsToFind",
    "ImageToClassify",
    "MarkdownText",
    "PagesToRead",
    "Task",
    "Tasks",
]
