"""Signatures are those of the standard: its own library accepts them, and nothing that was changed."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from octavo.deliver.channels import new_secret, sign, signed_headers

BODY = '{"type":"document.completed","title":"größer"}'.encode()


@settings(deadline=None)  # machines that run tests are busy
@given(st.text().map(str.encode), st.from_regex(r"\A[a-zA-Z0-9_-]{1,60}\Z"))
def test_the_reference_library_accepts_what_we_sign(body: bytes, message_id: str) -> None:
    secret = new_secret()
    headers = signed_headers(secret, message_id, int(time.time()), body)
    Webhook(secret).verify(body, headers, json_parse=False)


def test_the_example_of_the_standard_has_the_signature_of_the_standard() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    assert sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}') == (
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    )


@pytest.mark.parametrize("changed", ["body", "webhook-id", "webhook-timestamp", "secret"])
def test_what_was_changed_on_its_way_is_refused(changed: str) -> None:
    secret = new_secret()
    headers = signed_headers(secret, "evt_1", int(time.time()), BODY)
    if changed in headers:
        headers[changed] = "evt_2" if changed == "webhook-id" else str(int(time.time()) - 5)
    with pytest.raises(WebhookVerificationError):
        Webhook(new_secret() if changed == "secret" else secret).verify(
            BODY + b" " if changed == "body" else BODY, headers
        )


def test_no_two_secrets_are_alike_and_all_are_long() -> None:
    secrets = {new_secret() for _ in range(100)}
    assert len(secrets) == 100
    assert all(one.startswith("whsec_") and len(one) == 50 for one in secrets)
