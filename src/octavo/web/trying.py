"""Mappings tried out on a PDF while somebody waits: in the sandbox, one at a time, and nothing is kept."""

from __future__ import annotations

from pathlib import Path

from octavo.convert.contract import Conversion
from octavo.convert.steps import convert_pdf_in_sandbox
from octavo.core.settings import Settings
from octavo.extract.ocr.steps import Recognition
from octavo.extract.pdf.steps import PdfInSandbox
from octavo.sandbox import Sandbox
from octavo.web.turns import Turns

MOST_WAITING = 10
BUSY_SECONDS = 5.0


class Trials:
    """Of one web process."""

    def __init__(self, settings: Settings, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._recognition = Recognition(sandbox, settings.ocr_language, settings.ocr_seconds)
        self._turns = Turns(1, MOST_WAITING, BUSY_SECONDS)

    async def run(self, path: Path, mapping_text: str, label: str) -> Conversion:
        """What the rules of this mapping find; no model is asked. Raises what reading a PDF raises."""
        async with self._turns.take():
            pdf = PdfInSandbox(self._sandbox, path, limits=self._sandbox.limits, recognition=self._recognition)
            return (await convert_pdf_in_sandbox(pdf, mapping_text, label)).conversion
