"""Reads a picture: a copy that fits on screens, and the text of its sheets. What cannot be decoded is kept anyway."""

from __future__ import annotations

from pathlib import Path

from octavo.core.errors import BadInput
from octavo.core.types import JSON
from octavo.extract.extracted import Extracted, Metadata, Quality, SourceType
from octavo.extract.pictures.picture_file import PictureInSandbox, unread_sheets
from octavo.jobs.job_run import Run
from octavo.pipeline.page_parts import PageParts
from octavo.pipeline.recognising import recognise_pages
from octavo.pipeline.revision_files import RevisionFiles
from octavo.pipeline.tools import Tools

UNREADABLE = "unreadable"


async def fit_picture(run: Run[Tools], files: RevisionFiles, path: Path) -> dict[str, JSON]:
    """Where the copy is, or why there is none."""
    try:
        body = await _picture(run, path).fit()
    except BadInput as error:
        return {UNREADABLE: error.detail or error.title}
    return await files.put("picture.jpg", body)


async def read_picture(run: Run[Tools], files: RevisionFiles, path: Path) -> Extracted:
    picture = _picture(run, path)
    try:
        facts = await picture.open()
    except BadInput as error:
        return unreadable_picture(error.detail or error.title)
    return await recognise_pages(run, PageParts(run, files), picture, facts, [unread_sheets(facts)])


def unreadable_picture(reason: str) -> Extracted:
    """Complete, without text, and it says why."""
    about = Metadata(extra={UNREADABLE: reason})
    return Extracted(SourceType.IMAGE, "", 0, Quality.EMPTY, metadata=about)


def _picture(run: Run[Tools], path: Path) -> PictureInSandbox:
    sandbox = run.tools.sandbox
    return PictureInSandbox(sandbox, path, limits=sandbox.limits, recognition=run.tools.recognition)
