"""Cloud platforms of ours, which check the credentials of every request exactly as the real ones do."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, quote, unquote
from zlib import crc32

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support import sites
from tests.support.fake_ai.openai import FakeOpenAI
from tests.support.fake_ai.server import SECRET, Asked, Bill, FakeProvider, Trouble, as_json, in_parts
from tests.support.sites import Answer

AZURE_VERSION = "2024-10-21"
DEPLOYMENT = re.compile(r"/openai/deployments/([^/]+)/(chat/completions|embeddings)")


class FakeMistral(FakeOpenAI):
    def _serve(self, request: sites.Asked) -> Answer:
        allowed = request.headers.get("authorization") == f"Bearer {SECRET}" and request.path.startswith("/v1/")
        return self.route(request) if allowed else self.refuse(Trouble.BAD_KEY)


class FakeAzure(FakeOpenAI):
    def _serve(self, request: sites.Asked) -> Answer:
        found = DEPLOYMENT.fullmatch(request.path)
        if request.headers.get("api-key") != SECRET or "authorization" in request.headers:
            return self.refuse(Trouble.BAD_KEY)
        if not found or parse_qs(request.query) != {"api-version": [AZURE_VERSION]}:
            return self.error(404, {"error": {"code": "404", "message": "Resource not found"}})
        body = json.loads(request.body) | {"model": unquote(found[1])}
        plain = sites.Asked("POST", f"/v1/{found[2]}", "", request.headers, json.dumps(body).encode())
        return self.route(plain)


# Google --------------------------------------------------------------------------------------------------------------

ACCOUNT, PROJECT, KEY_ID = "octavo@harbour-1.iam.gserviceaccount.com", "harbour-1", "k1"


@cache
def account_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def write_account(token_uri: str, key: rsa.RSAPrivateKey | None = None) -> str:
    """The file of a service account, as Google issues it."""
    form = serialization.PrivateFormat.PKCS8
    pem = (key or account_key()).private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    about = {"type": "service_account", "project_id": PROJECT, "private_key_id": KEY_ID, "client_email": ACCOUNT}
    return json.dumps({**about, "private_key": pem.decode(), "token_uri": token_uri})


class FakeVertex(FakeOpenAI):
    """Issues a new token for each statement that is signed with the key of the account."""

    def clear(self) -> None:
        super().clear()
        self.tokens: list[str] = []
        self.lifetime = 3600

    @property
    def account(self) -> str:
        return write_account(f"{self.url}/token")

    @property
    def base(self) -> str:
        return f"{self.url}/v1/projects/{{project}}/locations/global/endpoints/openapi"

    def _serve(self, request: sites.Asked) -> Answer:
        if request.path == "/token":
            return self._issue(request)
        prefix = f"/v1/projects/{PROJECT}/locations/global/endpoints/openapi/"
        if not self.tokens or request.headers.get("authorization") != f"Bearer {self.tokens[-1]}":
            return self.refuse(Trouble.BAD_KEY)
        if not request.path.startswith(prefix):
            return self.error(404, {"error": {"message": "Not found"}})
        return self.route(request)

    def _issue(self, request: sites.Asked) -> Answer:
        form = parse_qs(request.body.decode())
        assert form["grant_type"] == ["urn:ietf:params:oauth:grant-type:jwt-bearer"]
        (statement,) = form["assertion"]
        try:
            required = ["iss", "scope", "aud", "iat", "exp"]
            claims = jwt.decode(
                statement,
                account_key().public_key(),
                ["RS256"],
                audience=f"{self.url}/token",
                issuer=ACCOUNT,
                options={"require": required},
            )
        except jwt.PyJWTError as error:
            return self.error(400, {"error": "invalid_grant", "error_description": str(error)})
        assert jwt.get_unverified_header(statement)["kid"] == KEY_ID
        assert claims["scope"] == "https://www.googleapis.com/auth/cloud-platform"
        assert claims["exp"] - claims["iat"] <= 3600
        self.tokens.append(f"ya29.{SECRET}-{len(self.tokens)}")
        token = {"access_token": self.tokens[-1], "expires_in": self.lifetime, "token_type": "Bearer"}
        return as_json(token)


# Amazon --------------------------------------------------------------------------------------------------------------

ACCESS, SESSION, REGION = "AKIAHARBOUR", "session-5f2d", "eu-central-1"
AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<access>[^/]+)/(?P<scope>[^,]+), SignedHeaders=(?P<names>[^,]+), "
    r"Signature=(?P<signature>[0-9a-f]{64})"
)
ENDINGS = {Trouble.BLOCKED: "content_filtered", Trouble.TRUNCATED: "max_tokens"}
REFUSALS: dict[Trouble, tuple[int, str]] = {
    Trouble.RATE_LIMIT: (429, "ThrottlingException: Too many requests"),
    Trouble.QUOTA: (400, "ServiceQuotaExceededException: Your account has no quota left"),
    Trouble.OVERLOADED: (503, "ServiceUnavailableException"),
    Trouble.BROKEN: (500, "InternalServerException"),
    Trouble.TOO_LONG: (400, "ValidationException: Input is too long for requested model."),
    Trouble.BAD_KEY: (403, "The security token included in the request is invalid."),
    Trouble.REFUSED: (404, "ResourceNotFoundException: Could not resolve the model"),
}


def is_signed(request: sites.Asked, secret: str, region: str = REGION) -> bool:
    """Compute the signature again from the request as it arrived (AWS Signature Version 4)."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    found = AUTHORIZATION.fullmatch(headers.get("authorization", ""))
    stamp = headers.get("x-amz-date", "")
    if not found or found["access"] != ACCESS or found["scope"] != f"{stamp[:8]}/{region}/bedrock/aws4_request":
        return False
    age = datetime.now(UTC) - datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    names = found["names"].split(";")
    if abs(age) > timedelta(minutes=5) or not {"host", "x-amz-date", "content-type"} <= set(names):
        return False
    lines = [f"{name}:{headers[name].strip()}" for name in names]
    content = sha256(request.body).hexdigest()
    path = "/".join(quote(part, safe="-_.~") for part in request.path.split("/"))
    canonical = "\n".join([request.method, path, request.query, *lines, "", found["names"], content])
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, found["scope"], sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in found["scope"].split("/"):
        key = hmac.new(key, part.encode(), sha256).digest()
    return hmac.new(key, text.encode(), sha256).hexdigest() == found["signature"]


class FakeBedrock(FakeProvider):
    """`session` is the token that requests must have, if any."""

    def clear(self) -> None:
        super().clear()
        self.session = SESSION

    @property
    def key(self) -> str:
        return f"{ACCESS}:{SECRET}:{SESSION}"

    def _serve(self, request: sites.Asked) -> Answer:
        signed = is_signed(request, SECRET) and request.headers.get("x-amz-security-token", "") == self.session
        return self.route(request) if signed else self.refuse(Trouble.BAD_KEY)

    def route(self, request: sites.Asked) -> Answer:
        found = re.fullmatch(r"/model/([^/]+)/(converse|converse-stream)", request.path)
        assert found, request.path
        body = json.loads(request.body)
        ((system,), (message,)) = body["system"], body["messages"]
        content, tools = message["content"], body.get("toolConfig", {}).get("tools", [])
        assert body["inferenceConfig"]["maxTokens"] > 0
        return self.converse(
            Asked(
                model=unquote(found[1]),
                instructions=system["text"],
                text="\n".join(block["text"] for block in content if "text" in block),
                schema=tools[0]["toolSpec"]["inputSchema"]["json"] if tools else None,
                pictures=sum("image" in block for block in content),
                files=tuple(block["document"]["source"]["bytes"] for block in content if "document" in block),
                body=body,
                streamed=found[2] == "converse-stream",
            )
        )

    def say(self, text: str, bill: Bill, trouble: Trouble | None) -> dict[str, Any]:
        """An answer in the form that was asked for is the input of a tool."""
        try:
            block = {"toolUse": {"toolUseId": "t1", "name": "answer", "input": dict(json.loads(text))}}
            reason = "tool_use"
        except (ValueError, TypeError):
            block, reason = {"text": text}, "end_turn"
        return {
            "output": {"message": {"role": "assistant", "content": [block]}},
            "stopReason": ENDINGS[trouble] if trouble else reason,
            "usage": {
                "inputTokens": bill.read,
                "outputTokens": bill.written,
                "totalTokens": bill.read + bill.written,
            },
            "metrics": {"latencyMs": 5},
        }

    def stream(self, said: dict[str, Any]) -> list[dict[str, Any] | str]:
        """Each event has its name as its only key."""
        (block,) = said["output"]["message"]["content"]
        if "toolUse" in block:
            about = {name: block["toolUse"][name] for name in ("toolUseId", "name")}
            begin = [{"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": about}}}]
            deltas = [{"toolUse": {"input": part}} for part in in_parts(json.dumps(block["toolUse"]["input"]))]
        else:
            begin, deltas = [], [{"text": part} for part in in_parts(block["text"])]
        parts = [{"contentBlockDelta": {"contentBlockIndex": 0, "delta": one}} for one in deltas]
        end = [{"contentBlockStop": {"contentBlockIndex": 0}}, {"messageStop": {"stopReason": said["stopReason"]}}]
        counts = {"metadata": {"usage": said["usage"], "metrics": said["metrics"]}}
        return [{"messageStart": {"role": "assistant"}}, *begin, *parts, *end, counts]

    def as_events(self, events: Iterable[dict[str, Any] | str]) -> Answer:
        named = [next(iter(one.items())) for one in events if isinstance(one, dict)]
        pieces = [as_message(name, json.dumps(content).encode()) for name, content in named]
        return Answer(200, headers={"Content-Type": "application/vnd.amazon.eventstream"}, pieces=pieces)

    def refuse(self, trouble: Trouble) -> Answer:
        status, message = REFUSALS[trouble]
        return self.error(status, {"message": message})


def as_message(name: str, content: bytes) -> bytes:
    """A message of Amazon's binary event streams."""
    kind = "exception" if name.endswith("Exception") else "event"
    headers = {f":{kind}-type": name, ":content-type": "application/json", ":message-type": kind}
    block = b"".join(
        bytes([len(key)]) + key.encode() + b"\x07" + len(value).to_bytes(2) + value.encode()
        for key, value in headers.items()
    )
    lengths = (len(block) + len(content) + 16).to_bytes(4) + len(block).to_bytes(4)
    message = lengths + crc32(lengths).to_bytes(4) + block + content
    return message + crc32(message).to_bytes(4)
