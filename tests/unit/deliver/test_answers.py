"""What a receiver's answer means: done, again later, never again, or gone."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from octavo.core.errors import RETRY_RULES
from octavo.core.http import read_retry_after
from octavo.deliver.channels import (
    Channels,
    DeliveryFailed,
    MailChannel,
    ReceiverBusy,
    ReceiverFailed,
    ReceiverGone,
    ReceiverRefused,
    UnknownChannel,
    raise_for_status,
)
from octavo.deliver.subscribers import conceal

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_every_kind_of_success_is_success(status: int) -> None:
    raise_for_status(status, {})


@pytest.mark.parametrize(
    ("status", "error", "again"),
    [
        (300, ReceiverRefused, False),
        (302, ReceiverRefused, False),
        (400, ReceiverRefused, False),
        (401, ReceiverRefused, False),
        (404, ReceiverRefused, False),
        (408, ReceiverFailed, True),
        (410, ReceiverGone, False),
        (425, ReceiverFailed, True),
        (429, ReceiverBusy, True),
        (500, ReceiverFailed, True),
        (503, ReceiverFailed, True),
        (599, ReceiverFailed, True),
    ],
)
def test_everything_else_says_whether_to_try_again(status: int, error: type[DeliveryFailed], again: bool) -> None:
    with pytest.raises(error) as raised:
        raise_for_status(status, {"retry-after": "7"})
    assert type(raised.value) is error
    assert raised.value.answer == status
    assert (RETRY_RULES[raised.value.error_class] is not None) is again
    assert raised.value.retry_after_seconds == (7 if again else None)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("0", 0),
        ("120", 120),
        ("999999999999999999999", 3600),
        ("٣", None),
        ("Fri, 02 Jan 2026 03:05:05 GMT", 60),
        ("Fri, 02 Jan 2026 03:00:00 GMT", 0),
        ("Fri, 02 Jan 2099 03:00:00 GMT", 3600),
        ("Fri, 99 Jan 2026 03:00:00 GMT", None),
    ],
)
def test_a_receiver_may_ask_for_patience_but_not_for_long(value: str | None, seconds: float | None) -> None:
    assert read_retry_after(value, NOW, longest=3600) == seconds


def test_channels_refuse_duplicate_names_and_list_known_ones() -> None:
    channels = Channels([MailChannel(None, "octavo@localhost", 1)])
    with pytest.raises(ValueError, match="mail exists"):
        channels.add(MailChannel(None, "octavo@localhost", 1))
    with pytest.raises(UnknownChannel, match="pigeon is not one of mail"):
        channels["pigeon"]


def test_a_chats_address_is_shown_only_in_part() -> None:
    assert conceal("https://hooks.example.com/services/T0/B0/verysecret") == "https://hooks.example.com/…cret"
