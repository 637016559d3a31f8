"""The example in the how-to page does what the page says."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from octavo.deliver.channels import new_secret, signed_headers
from octavo.deliver.messages import DEFAULT_EVENTS

PAGE = (Path(__file__).parents[3] / "docs/how-to/webhooks.md").read_text()
Check = Callable[[str, dict[str, str], bytes], bool]


def example() -> Check:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    return cast("Check", names["is_ours"])


def test_what_we_sign_passes_and_nothing_else_does() -> None:
    is_ours, secret, body = example(), new_secret(), '{"type":"größer"}'.encode()
    now = int(time.time())
    headers = signed_headers(secret, "evt_1", now, body)
    assert is_ours(secret, headers, body)
    assert not is_ours(secret, headers, body + b" ")
    assert not is_ours(new_secret(), headers, body)
    assert not is_ours(secret, headers | {"webhook-id": "evt_2"}, body)
    assert not is_ours(secret, signed_headers(secret, "evt_1", now - 400, body), body)


def test_the_page_lists_automatic_recipients() -> None:
    assert all(f"`{one}`" in PAGE for one in DEFAULT_EVENTS)
