"""Model providers, one file each. A provider encodes requests and decodes responses.

No other package depends on the request and response formats. Only the gateway retries calls, because each attempt costs
money.
"""

from octavo.ai.providers.anthropic import Anthropic
from octavo.ai.providers.cloud import Azure, Bedrock, Mistral, Vertex
from octavo.ai.providers.gemini import Gemini, GeminiFiles
from octavo.ai.providers.openai import Compatible, OpenAI
from octavo.ai.providers.provider import (
    Embedder,
    EmbeddingReply,
    HttpClient,
    ModelReply,
    OnText,
    Provider,
    VisionLimits,
)

__all__ = [
    "Anthropic",
    "Azure",
    "Bedrock",
    "Compatible",
    "Embedder",
    "EmbeddingReply",
    "Gemini",
    "GeminiFiles",
    "HttpClient",
    "Mistral",
    "ModelReply",
    "OnText",
    "OpenAI",
    "Provider",
    "Vertex",
    "VisionLimits",
]
