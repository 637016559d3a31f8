"""The tasks for models. Each task has its code in a module of this package, a prompt in `prompts/`, and an entry in
`TASKS`.
"""

from octavo.ai.tasks.answer_question import ANSWER_QUESTION
from octavo.ai.tasks.answer_segment import ANSWER_SEGMENT
from octavo.ai.tasks.consolidate_answers import CONSOLIDATE_ANSWERS
from octavo.ai.tasks.describe_documents import (
    CLASSIFY_DOCUMENT,
    CLASSIFY_IMAGE,
    ENRICH_CHUNKS,
    ChunkInsights,
    ImageToClassify,
)
from octavo.ai.tasks.extract_fields import EXTRACT_FIELDS, FieldsToFind, FieldToFind
from octavo.ai.tasks.judge_pairs import EXPLAIN_BRIDGES, JUDGE_CONTRADICTIONS
from octavo.ai.tasks.rewrite_question import REWRITE_QUESTION
from octavo.ai.tasks.task import MarkdownText, Task, Tasks
from octavo.ai.tasks.write_markdown import CLEAN_MARKDOWN, EXTRACT_PAGES, PagesToRead

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
