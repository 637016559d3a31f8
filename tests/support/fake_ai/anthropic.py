"""A provider of ours that speaks as Anthropic does: messages."""

from __future__ import annotations

import json
from typing import Any

from tests.support import sites
from tests.support.fake_ai.server import Asked, Bill, FakeProvider, Trouble, in_parts
from tests.support.sites import Answer

ENDINGS = {Trouble.BLOCKED: "refusal", Trouble.TRUNCATED: "max_tokens"}
REFUSALS: dict[Trouble, tuple[int, str, str]] = {
    Trouble.RATE_LIMIT: (429, "rate_limit_error", "This request would exceed your rate limit"),
    Trouble.QUOTA: (400, "invalid_request_error", "Your credit balance is too low to access the API"),
    Trouble.OVERLOADED: (529, "overloaded_error", "Overloaded"),
    Trouble.BROKEN: (500, "api_error", "Internal server error"),
    Trouble.TOO_LONG: (400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum"),
    Trouble.BAD_KEY: (401, "authentication_error", "invalid x-api-key"),
    Trouble.REFUSED: (404, "not_found_error", "model: claude-nobody"),
}


class FakeAnthropic(FakeProvider):
    def route(self, request: sites.Asked) -> Answer:
        assert request.headers["anthropic-version"]
        body = json.loads(request.body)
        content = body["messages"][0]["content"]
        return self.converse(
            Asked(
                model=body["model"],
                instructions=body["system"],
                text="\n".join(block["text"] for block in content if block["type"] == "text"),
                schema=body.get("output_config", {}).get("format", {}).get("schema"),
                pictures=sum(block["type"] == "image" for block in content),
                files=tuple(block["source"]["data"] for block in content if block["type"] == "document"),
                body=body,
                streamed=bool(body.get("stream")),
            )
        )

    def say(self, text: str, bill: Bill, trouble: Trouble | None) -> dict[str, Any]:
        return {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": bill.model,
            "content": [{"type": "text", "text": text}],
            "stop_reason": ENDINGS[trouble] if trouble else "end_turn",
            "usage": {"input_tokens": bill.read, "output_tokens": bill.written, "cache_read_input_tokens": 0},
        }

    def stream(self, said: dict[str, Any]) -> list[dict[str, Any] | str]:
        counts = said["usage"]
        start: dict[str, Any] = {
            "type": "message_start",
            "message": {**said, "content": [], "usage": {**counts, "output_tokens": 1}},
        }
        deltas = [{"type": "text_delta", "text": part} for part in in_parts(said["content"][0]["text"])]
        events = [{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas]
        end = {"type": "message_delta", "delta": {"stop_reason": said["stop_reason"]},
               "usage": {"output_tokens": counts["output_tokens"]}}  # fmt: skip
        return [start, {"type": "ping"}, *events, end, {"type": "message_stop"}]

    def refuse(self, trouble: Trouble) -> Answer:
        status, kind, message = REFUSALS[trouble]
        return self.error(status, {"type": "error", "error": {"type": kind, "message": message}})
