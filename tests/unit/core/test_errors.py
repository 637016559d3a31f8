"""Every failure has a stable code, a retry rule and a line for people."""

from __future__ import annotations

import inspect
import re
from importlib import import_module

import pytest

from octavo.core import errors
from octavo.core.errors import (
    RETRY_RULES,
    BadInput,
    Defect,
    ErrorClass,
    OctavoError,
    StorageFailed,
    TooLarge,
)

JOB_CODES = {
    "NOT_PDF",
    "NOT_SUPPORTED",
    "TOO_LARGE",
    "ENCRYPTED",
    "EMPTY",
    "TIMEOUT",
    "NETWORK",
    "RATE_LIMIT",
    "AI_QUOTA",
    "AI_CONTENT_BLOCKED",
    "AI_TOKEN_LIMIT",
    "VALIDATION",
    "GW_4XX",
    "GW_5XX",
    "GW_TIMEOUT",
    "IO_ERROR",
    "CRASHED",
    "OVER_BUDGET",
    "CANCELLED",
    "UNKNOWN",
}
ALL = [one for one in vars(errors).values() if inspect.isclass(one) and issubclass(one, OctavoError)]


def test_every_code_that_a_job_can_carry_has_an_error() -> None:
    assert {error.code for error in ALL} >= JOB_CODES


def test_codes_are_not_shared() -> None:
    codes = [error.code for error in ALL if error is not Defect]
    assert sorted(set(codes)) == sorted(codes)


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)
def test_every_error_says_something_to_a_person(error: type[OctavoError]) -> None:
    title = error().title
    assert title.endswith(".")
    assert title[0].isupper()
    assert "\n" not in title
    assert 400 <= error.status < 600


def test_bad_input_is_never_answered_as_our_mistake() -> None:
    assert all(error.status < 500 for error in ALL if issubclass(error, BadInput))


def test_the_detail_follows_the_title_on_one_line() -> None:
    assert TooLarge("It has 300 MB; 200 MB are allowed.").line == (
        "Larger than the limit. It has 300 MB; 200 MB are allowed."
    )


def test_a_general_bad_input_prints_only_its_detail() -> None:
    assert BadInput("The file is damaged.").line == "The file is damaged."
    assert BadInput().line == "Invalid input."


@pytest.mark.parametrize(
    ("error_class", "first_delay", "charged"),
    [
        (ErrorClass.TRANSIENT, 5, True),
        (ErrorClass.TIMEOUT, 5, True),
        (ErrorClass.NETWORK, 5, False),
        (ErrorClass.RATE_LIMIT, 30, False),
        (ErrorClass.AI_QUOTA, 60, False),
    ],
)
def test_what_may_pass_is_tried_again_after_a_growing_delay(
    error_class: ErrorClass, first_delay: int, charged: bool
) -> None:
    rule = RETRY_RULES[error_class]
    assert rule is not None
    assert (rule.first_delay_seconds, rule.factor, rule.charged) == (first_delay, 5, charged)


def test_every_class_has_a_rule_and_lasting_ones_are_not_tried_again() -> None:
    assert set(RETRY_RULES) == set(ErrorClass)
    lasting = {error_class for error_class, rule in RETRY_RULES.items() if rule is None}
    assert lasting == {
        ErrorClass.VALIDATION,
        ErrorClass.UNSUPPORTED,
        ErrorClass.CONTENT_BLOCKED,
        ErrorClass.PERMANENT,
    }


def test_a_full_disk_is_worth_another_try() -> None:
    assert RETRY_RULES[StorageFailed.error_class] is not None


def every(error: type[OctavoError]) -> list[type[OctavoError]]:
    return [error, *(deeper for one in error.__subclasses__() for deeper in every(one))]


def test_no_message_promises_a_retry_because_the_last_attempt_fails_with_it_too() -> None:
    """Whether a job is retried is said by the job: it waits for its next attempt, or it failed for good."""
    import_module("octavo.web.app")
    import_module("octavo.jobs.worker")
    messages = [f"{error.__doc__} {vars(error).get('advice', '')}" for error in every(OctavoError)]
    assert len(messages) > 50
    assert [message for message in messages if re.search(r"\b(?:re)?tried (?:again|automatically)", message)] == []


def test_only_a_storage_that_waiting_can_cure_asks_callers_to_wait() -> None:
    import_module("octavo.storage")
    kinds = every(StorageFailed)
    assert len(kinds) > 3
    for error in kinds:
        assert (error.status == 503) == (RETRY_RULES[error.error_class] is not None), error
