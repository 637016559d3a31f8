"""Answers questions from an owner's documents, with citations that are looked at before anybody believes them."""

from octavo.ask.citing import with_marks
from octavo.ask.contract import Answer, Citation, Said
from octavo.ask.steps import Asking, answer, find_passages

__all__ = ["Answer", "Asking", "Citation", "Said", "answer", "find_passages", "with_marks"]
