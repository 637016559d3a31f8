"""A provider of ours that speaks as OpenAI does: chat completions and embeddings."""

from __future__ import annotations

import json
from typing import Any

from tests.support import sites
from tests.support.fake_ai.server import Asked, Bill, FakeProvider, Trouble, as_json, embedding_of, in_parts
from tests.support.sites import Answer

DIMENSIONS = 6
ENDINGS = {Trouble.BLOCKED: "content_filter", Trouble.TRUNCATED: "length"}
REFUSALS: dict[Trouble, tuple[int, str | None, str]] = {
    Trouble.RATE_LIMIT: (429, "rate_limit_exceeded", "Rate limit reached for requests"),
    Trouble.QUOTA: (429, "insufficient_quota", "You exceeded your current quota"),
    Trouble.OVERLOADED: (503, None, "The engine is currently overloaded"),
    Trouble.BROKEN: (500, None, "The server had an error"),
    Trouble.TOO_LONG: (400, "context_length_exceeded", "This model's maximum context length is 10 tokens"),
    Trouble.BAD_KEY: (401, "invalid_api_key", "Incorrect API key provided: sk-can****"),
    Trouble.REFUSED: (404, "model_not_found", "The model does not exist"),
}


class FakeOpenAI(FakeProvider):
    def route(self, request: sites.Asked) -> Answer:
        body = json.loads(request.body)
        if request.path == "/v1/embeddings":
            return self._embed(body)
        system, user = body["messages"]
        texts = [part["text"] for part in user["content"] if part["type"] == "text"]
        form = body.get("response_format", {}).get("json_schema", {})
        return self.converse(
            Asked(
                model=body["model"],
                instructions=system["content"],
                text="\n".join(texts),
                schema=form.get("schema"),
                pictures=sum(part["type"] == "image_url" for part in user["content"]),
                files=tuple(part["file"]["file_data"] for part in user["content"] if part["type"] == "file"),
                body=body,
                streamed=bool(body.get("stream")),
            )
        )

    def _embed(self, body: dict[str, Any]) -> Answer:
        if trouble := self.trouble():
            return self.refuse(trouble)
        texts: list[str] = body["input"]
        bill = self.charge(body["model"], sum(map(len, texts)) // 4)
        rows = [
            {"object": "embedding", "index": number, "embedding": embedding_of(text, DIMENSIONS)}
            for number, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": bill.read, "total_tokens": bill.read}
        return as_json({"object": "list", "data": rows[::-1], "model": body["model"], "usage": usage})

    def say(self, text: str, bill: Bill, trouble: Trouble | None) -> dict[str, Any]:
        ending = ENDINGS[trouble] if trouble else "stop"
        message = {"role": "assistant", "content": text, "refusal": None}
        usage = {
            "prompt_tokens": bill.read,
            "completion_tokens": bill.written,
            "total_tokens": bill.read + bill.written,
        }
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": bill.model,
            "choices": [{"index": 0, "message": message, "finish_reason": ending, "logprobs": None}],
            "usage": {**usage, "prompt_tokens_details": {"cached_tokens": 0}},
        }

    def stream(self, said: dict[str, Any]) -> list[dict[str, Any] | str]:
        (choice,) = said["choices"]
        head = {"id": said["id"], "object": "chat.completion.chunk", "model": said["model"]}
        parts: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        parts += [{"content": part} for part in in_parts(choice["message"]["content"])]
        events = [{**head, "choices": [{"index": 0, "delta": part, "finish_reason": None}]} for part in parts]
        end: dict[str, Any] = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}
        return [*events, end, {**head, "choices": [], "usage": said["usage"]}, "[DONE]"]

    def refuse(self, trouble: Trouble) -> Answer:
        status, code, message = REFUSALS[trouble]
        return self.error(status, {"error": {"message": message, "type": "error", "param": None, "code": code}})
