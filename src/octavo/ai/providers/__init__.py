"""Those who run models, each in one file: how a question is put into their form, and what their answer means.

Nothing outside of this package knows one of them, and nothing in it retries: that is the gateway's, which pays.
"""

from octavo.ai.providers.anthropic import Anthropic
from octavo.ai.providers.gemini import Gemini
from octavo.ai.providers.gemini_files import GeminiFiles
from octavo.ai.providers.http_client import Wire
from octavo.ai.providers.openai import Compatible, OpenAI
from octavo.ai.providers.provider import Embedded, Embedder, Provider, Reply, Sight

__all__ = [
    "Anthropic",
    "Compatible",
    "Embedded",
    "Embedder",
    "Gemini",
    "GeminiFiles",
    "OpenAI",
    "Provider",
    "Reply",
    "Sight",
    "Wire",
]
