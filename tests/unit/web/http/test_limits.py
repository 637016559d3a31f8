"""Nobody asks too often, nobody pays for another, and counting takes no more memory than it may."""

from __future__ import annotations

import math
from uuid import uuid4

import pytest

from octavo.owners import Caller
from octavo.web.http.limits import Buckets, Failures, Limits, TooFast, group_address
from tests.support.clock import Clock


def taken(buckets: Buckets, key: str, wanted: int) -> int:
    """How many of so many requests are let through."""
    through = 0
    for _ in range(wanted):
        try:
            buckets.take(key)
        except TooFast:
            continue
        through += 1
    return through


def caller(kind: str = "user") -> Caller:
    return Caller(uuid4(), kind, None, "owner", "write", "session")


# Buckets -----------------------------------------------------------------------------------------------------------


def test_a_minutes_worth_is_let_through_at_once_and_not_one_more() -> None:
    assert taken(Buckets(60, Clock()), "a", 100) == 60


@pytest.mark.parametrize(("seconds", "more"), [(0.0, 0), (0.9, 0), (1.0, 1), (30.0, 30), (60.0, 60), (3600.0, 60)])
def test_what_was_used_comes_back_with_time(seconds: float, more: int) -> None:
    clock = Clock()
    buckets = Buckets(60, clock)
    taken(buckets, "a", 60)
    clock.now += seconds
    assert taken(buckets, "a", 100) == more


def test_a_refusal_says_when_to_come_back_and_that_is_true() -> None:
    clock = Clock()
    buckets = Buckets(6, clock)
    taken(buckets, "a", 6)
    with pytest.raises(TooFast) as refused:
        buckets.take("a")
    assert refused.value.retry_after_seconds == pytest.approx(10)
    assert "10 seconds" in refused.value.line
    clock.now += math.ceil(refused.value.retry_after_seconds or 0)
    buckets.take("a")


def test_refused_requests_do_not_put_off_the_next_one() -> None:
    clock = Clock()
    buckets = Buckets(60, clock)
    taken(buckets, "a", 1000)
    clock.now += 1
    assert taken(buckets, "a", 1) == 1


def test_keys_do_not_pay_for_each_other() -> None:
    buckets = Buckets(5, Clock())
    assert taken(buckets, "a", 10) == 5
    assert taken(buckets, "b", 10) == 5


def test_buckets_that_are_full_again_are_dropped() -> None:
    clock = Clock()
    buckets = Buckets(5, clock)
    for number in range(100):
        buckets.take(str(number))
    clock.now += 60
    buckets.take("last")
    assert len(buckets) == 1


def test_however_many_ask_memory_is_bounded_and_the_busiest_stay_counted() -> None:
    buckets = Buckets(2, Clock(), most_keys=10)
    for number in range(1000):
        taken(buckets, "busy", 1)
        buckets.take(str(number))
    assert len(buckets) <= 11
    assert taken(buckets, "busy", 5) == 0


# Failures ----------------------------------------------------------------------------------------------------------


def test_ten_failures_and_then_none_for_a_quarter_of_an_hour() -> None:
    clock = Clock()
    failures = Failures(10, 900, clock)
    for _ in range(10):
        failures.begin("a")
        clock.now += 1
    with pytest.raises(TooFast) as refused:
        failures.begin("a")
    assert refused.value.retry_after_seconds == pytest.approx(890)
    failures.begin("b")
    clock.now += 889
    with pytest.raises(TooFast):
        failures.begin("a")
    clock.now += 1
    failures.begin("a")
    with pytest.raises(TooFast):
        failures.begin("a")


def test_only_failures_count() -> None:
    failures = Failures(3, 900, Clock())
    for _ in range(50):
        failures.begin("a")
        failures.succeed("a")
    failures.begin("a")
    failures.begin("a")
    failures.begin("a")
    with pytest.raises(TooFast):
        failures.begin("a")


def test_a_success_does_not_forgive_earlier_failures() -> None:
    failures = Failures(2, 900, Clock())
    failures.begin("a")
    failures.begin("a")
    failures.succeed("a")
    failures.begin("a")
    with pytest.raises(TooFast):
        failures.begin("a")


def test_failures_are_forgotten_when_they_are_old() -> None:
    clock = Clock()
    failures = Failures(3, 900, clock, most_keys=50)
    for number in range(100):
        failures.begin(str(number))
    assert len(failures) <= 50
    clock.now += 901
    failures.begin("last")
    assert len(failures) == 1


# Who pays ----------------------------------------------------------------------------------------------------------


def limits(owners: int, addresses: int) -> Limits:
    clock = Clock()
    return Limits(Buckets(owners, clock), Buckets(addresses, clock), Failures(10, 900, clock))


def test_people_are_counted_by_owner_wherever_they_are() -> None:
    one = limits(owners=3, addresses=1)
    person = caller()
    for address in ("1.1.1.1", "1.1.1.1", "2.2.2.2"):
        one.admit(person, address)
    with pytest.raises(TooFast):
        one.admit(person, "3.3.3.3")
    one.admit(caller(), "1.1.1.1")


def test_visitors_are_counted_by_address_whoever_they_say_they_are() -> None:
    one = limits(owners=100, addresses=3)
    one.admit(None, "1.1.1.1")
    one.admit(caller("anonymous"), "1.1.1.1")
    one.admit(caller("anonymous"), "1.1.1.1")
    with pytest.raises(TooFast):
        one.admit(None, "1.1.1.1")
    with pytest.raises(TooFast):
        one.admit(caller("anonymous"), "1.1.1.1")
    one.admit(None, "2.2.2.2")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        # One client through a socket of both kinds.
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        (None, "", True),
        ("testclient", "testclient", True),
    ],
)
def test_what_counts_as_one_address(one: str | None, other: str | None, same: bool) -> None:
    assert (group_address(one) == group_address(other)) is same
