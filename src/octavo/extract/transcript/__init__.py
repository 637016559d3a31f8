"""Spoken words with their times, to paragraphs that know when each of their parts was said. Pure."""

from octavo.extract.transcript.paragraphs import Written, write
from octavo.extract.transcript.snippets import Snippet, clean_snippets
from octavo.extract.transcript.stamps import read_stamps

__all__ = ["Snippet", "Written", "clean_snippets", "read_stamps", "write"]
