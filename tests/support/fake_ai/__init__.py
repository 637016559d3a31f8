"""Providers of models that are ours: servers on a socket, which speak as the real ones do and fail when told to."""

from tests.support.fake_ai.anthropic import FakeAnthropic
from tests.support.fake_ai.cloud import FakeAzure, FakeBedrock, FakeMistral, FakeVertex
from tests.support.fake_ai.gemini import FakeGemini
from tests.support.fake_ai.openai import FakeOpenAI
from tests.support.fake_ai.server import Asked, FakeProvider, Trouble

__all__ = [
    "Asked",
    "FakeAnthropic",
    "FakeAzure",
    "FakeBedrock",
    "FakeGemini",
    "FakeMistral",
    "FakeOpenAI",
    "FakeProvider",
    "FakeVertex",
    "Trouble",
]
