"""A provider of ours that speaks as Google's Gemini does: generateContent, vectors, and files that expire."""

from __future__ import annotations

import json
from dataclasses import replace
from http import HTTPStatus
from typing import Any

from tests.support import sites
from tests.support.fake_ai.server import Asked, Bill, FakeProvider, Trouble, as_json, embedding_of, in_parts
from tests.support.sites import Answer

ENDINGS = {Trouble.BLOCKED: "SAFETY", Trouble.TRUNCATED: "MAX_TOKENS"}
GONE = "You do not have permission to access the File abc or it may not exist."
REFUSALS: dict[Trouble, tuple[int, str, str]] = {
    Trouble.RATE_LIMIT: (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota"),
    Trouble.QUOTA: (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota"),
    Trouble.OVERLOADED: (503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    Trouble.BROKEN: (500, "INTERNAL", "An internal error has occurred."),
    Trouble.TOO_LONG: (
        400,
        "INVALID_ARGUMENT",
        "The input token count (9) exceeds the maximum number of tokens allowed",
    ),
    Trouble.BAD_KEY: (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    Trouble.FILE_GONE: (403, "PERMISSION_DENIED", GONE),
    Trouble.REFUSED: (404, "NOT_FOUND", "models/gemini-nobody is not found for API version v1beta"),
}
DETAILS: dict[Trouble, list[dict[str, Any]]] = {
    Trouble.QUOTA: [{"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}],
    Trouble.RATE_LIMIT: [{"violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]}],
    Trouble.BAD_KEY: [{"reason": "API_KEY_INVALID", "domain": "googleapis.com"}],
}


class FakeGemini(FakeProvider):
    """`files` are those it has, by name. A new one is looked at `looks` times before it can be used."""

    def clear(self) -> None:
        super().clear()
        self.files: dict[str, bytes] = {}
        self.sent = 0
        self.looks = 0
        self.becomes = "ACTIVE"

    def route(self, request: sites.Asked) -> Answer:
        model, _, method = request.path.removeprefix("/v1beta/models/").partition(":")
        match method:
            case "generateContent" | "streamGenerateContent":
                return self._generate(model, json.loads(request.body), streamed=method != "generateContent")
            case "batchEmbedContents":
                return self._embed(model, json.loads(request.body))
            case _:
                return self._keep_files(request)

    def _generate(self, model: str, body: dict[str, Any], *, streamed: bool) -> Answer:
        parts = body["contents"][0]["parts"]
        files = tuple(part["fileData"]["fileUri"] for part in parts if "fileData" in part)
        if any(uri.removeprefix(self.url + "/v1beta/") not in self.files for uri in files):
            return self.refuse(Trouble.FILE_GONE)
        return self.converse(
            Asked(
                model=model,
                instructions=body["systemInstruction"]["parts"][0]["text"],
                text="\n".join(part["text"] for part in parts if "text" in part),
                schema=body["generationConfig"].get("responseJsonSchema"),
                pictures=sum("inlineData" in part for part in parts),
                files=files,
                body=body,
                streamed=streamed,
            )
        )

    def _embed(self, model: str, body: dict[str, Any]) -> Answer:
        if trouble := self.trouble():
            return self.refuse(trouble)
        texts = [one["content"]["parts"][0]["text"] for one in body["requests"]]
        dimensions = body["requests"][0]["outputDimensionality"]
        bill = self.charge(model, sum(map(len, texts)) // 4)
        vectors = [{"values": embedding_of(text, dimensions)} for text in texts]
        return as_json({"embeddings": vectors, "usageMetadata": {"promptTokenCount": bill.read}})

    def _keep_files(self, request: sites.Asked) -> Answer:
        if request.path == "/upload/v1beta/files":
            assert request.headers["x-goog-upload-command"] == "start"
            place = f"{self.url}/upload-here/{self.sent}?key={request.headers['x-goog-api-key']}"
            return Answer(200, b"", {"X-Goog-Upload-URL": place})
        if request.path.startswith("/upload-here/"):
            assert request.headers["x-goog-upload-command"] == "upload, finalize"
            self.sent += 1
            name = f"files/number-{self.sent}"
            self.files[name] = request.body
            return as_json({"file": self._describe(name)})
        return as_json(self._describe(request.path.removeprefix("/v1beta/")))

    def _describe(self, name: str) -> dict[str, str]:
        ready, self.looks = self.looks <= 0, self.looks - 1
        state = self.becomes if ready else "PROCESSING"
        return {"name": name, "uri": f"{self.url}/v1beta/{name}", "state": state}

    def say(self, text: str, bill: Bill, trouble: Trouble | None) -> dict[str, Any]:
        ending = ENDINGS[trouble] if trouble else "STOP"
        thought = bill.written // 3
        return {
            "candidates": [
                {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": ending, "index": 0}
            ],
            "usageMetadata": {
                "promptTokenCount": bill.read,
                "candidatesTokenCount": bill.written - thought,
                "thoughtsTokenCount": thought,
                "totalTokenCount": bill.read + bill.written,
            },
        }

    def stream(self, said: dict[str, Any]) -> list[dict[str, Any] | str]:
        (candidate,) = said["candidates"]
        texts = in_parts(candidate["content"]["parts"][0]["text"]) or [""]
        contents = [{"role": "model", "parts": [{"text": text}]} for text in texts]
        *events, last = [{"candidates": [{"content": one, "index": 0}]} for one in contents]
        last["candidates"][0]["finishReason"] = candidate["finishReason"]
        return [*events, {**last, "usageMetadata": said["usageMetadata"]}]

    def error(self, status: int, body: dict[str, Any]) -> Answer:
        return replace(super().error(status, body), headers={"Content-Type": "application/json"})

    def refuse(self, trouble: Trouble) -> Answer:
        status, name, message = REFUSALS[trouble]
        details = DETAILS.get(trouble, [])
        if status == HTTPStatus.TOO_MANY_REQUESTS and trouble is not Trouble.QUOTA:
            # In the body, where others have a header.
            details = [*details, {"@type": "google.rpc.RetryInfo", "retryDelay": f"{self.retry_after}s"}]
        return self.error(status, {"error": {"code": status, "message": message, "status": name, "details": details}})
