from __future__ import annotations

import pytest

from octavo.extract.ocr import scripts
from octavo.extract.ocr.tesseract import Reader, load_reader


@pytest.fixture
def models_stay_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening all models takes 2.7 s of processor time, and a page that no model reads well opens them repeatedly."""
    monkeypatch.setattr(scripts, "open_reader", load_reader)
    monkeypatch.setattr(Reader, "close", stay_open)


def stay_open(_reader: Reader) -> None:
    """The next page uses it again."""
