"""The transcript of a video is fetched from a server that answers as YouTube does, and every refusal has its words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from urllib.parse import parse_qs

import pytest

from octavo.core.errors import ErrorClass, OctavoError
from octavo.extract.transcript import RawTranscript
from octavo.fetch import AddressRefused, FetchLimits, GuardedClient
from octavo.intake import errors
from octavo.intake.links import fetch_transcript
from tests.support.sites import Answer, Route, Site, canary, page, running_site
from tests.support.youtube import AGE, BOT, CONSENT_PAGE, GONE, VIDEO, consenting, player, stand_in, timed_text, track

LIMITS = FetchLimits(bytes=1 << 20, seconds=10)
EN = track("en")
MANY = Answer(429, headers={"Retry-After": "77"})


@pytest.fixture
def site() -> Iterator[Site]:
    with running_site() as site:
        yield site


@pytest.fixture
async def client(site: Site) -> AsyncIterator[GuardedClient]:
    async with GuardedClient(frozenset({site.place})) as client:
        yield client


async def fetch(site: Site, client: GuardedClient, limits: FetchLimits = LIMITS) -> RawTranscript:
    return await fetch_transcript(client, VIDEO, limits, base=site.url)


async def test_the_transcript_comes_with_its_times_and_with_what_the_video_is_called(
    site: Site, client: GuardedClient
) -> None:
    stand_in(site, player(EN))
    got = await fetch(site, client)
    assert [(one.text, one.start, one.duration) for one in got.snippets] == [
        ("Hello and welcome.", 0.0, 1.5),
        ("[Music]", 1.5, 4.0),
        ("This is about 'rivers'.", 5.5, 3.0),
    ]
    assert (got.video_id, got.language, got.kind) == (VIDEO, "en", "manual")
    assert (got.title, got.author) == ("About rivers", "A geographer")
    assert [one.path for one in site.asked] == ["/watch", "/youtubei/v1/player", "/api/timedtext"]
    assert not any("cookie" in one.headers for one in site.asked)


@pytest.mark.parametrize(
    ("tracks", "chosen"),
    [
        ([track("en", generated=True), EN], ("en", "manual")),
        ([track("en", generated=True)], ("en", "generated")),
        ([EN, track("nl"), track("nl", generated=True)], ("nl", "manual")),
        ([EN, track("nl", generated=True)], ("nl", "generated")),
        ([track("de"), track("en-GB"), track("fr")], ("en-GB", "manual")),
        ([track("de"), track("fr")], ("de", "manual")),
        ([track("en-GB"), track("en", generated=True)], ("en-GB", "manual")),
    ],
    ids=[
        "by a person",
        "generated only",
        "own language",
        "own, generated",
        "English",
        "the first",
        "a kind of English",
    ],
)
async def test_the_videos_own_language_is_chosen_and_a_person_before_a_machine(
    site: Site, client: GuardedClient, tracks: list[dict[str, object]], chosen: tuple[str, str]
) -> None:
    stand_in(site, player(*tracks))
    got = await fetch(site, client)
    assert (got.language, got.kind) == chosen
    asked = parse_qs(site.asked[-1].query)
    assert (asked["lang"][0], "kind" in asked) == (chosen[0], chosen[1] == "generated")


async def test_a_question_for_consent_is_answered(site: Site, client: GuardedClient) -> None:
    stand_in(site, player(EN), watch=consenting)
    assert (await fetch(site, client)).snippets
    assert [one.path for one in site.asked][:2] == ["/watch", "/watch"]


REFUSALS: dict[str, tuple[dict[str, Route], type[OctavoError], ErrorClass]] = {
    "no captions": ({"answer": player()}, errors.TranscriptOff, ErrorClass.PERMANENT),
    "an empty transcript": ({"answer": player(EN), "text": timed_text([])}, errors.TranscriptOff, ErrorClass.PERMANENT),
    "a live stream": ({"answer": player(isLive=True)}, errors.VideoLive, ErrorClass.PERMANENT),
    "not begun": (
        {"answer": player(status="LIVE_STREAM_OFFLINE", reason="This live event will begin in 3 hours.")},
        errors.VideoLive,
        ErrorClass.PERMANENT,
    ),
    "removed": ({"answer": player(status="ERROR", reason=GONE)}, errors.VideoUnavailable, ErrorClass.PERMANENT),
    "private": (
        {"answer": player(status="LOGIN_REQUIRED", reason="This is a private video.")},
        errors.VideoUnavailable,
        ErrorClass.PERMANENT,
    ),
    "not here": (
        {"answer": player(status="UNPLAYABLE", reason="The uploader has not made this video available here.")},
        errors.VideoUnavailable,
        ErrorClass.PERMANENT,
    ),
    "for adults": (
        {"answer": player(status="LOGIN_REQUIRED", reason=AGE)},
        errors.VideoAgeRestricted,
        ErrorClass.PERMANENT,
    ),
    "taken for a robot": (
        {"answer": player(status="LOGIN_REQUIRED", reason=BOT)},
        errors.VideoBlocked,
        ErrorClass.TRANSIENT,
    ),
    "a riddle for people": (
        {"answer": player(EN), "watch": page('<div class="g-recaptcha"></div>')},
        errors.VideoTooManyRequests,
        ErrorClass.RATE_LIMIT,
    ),
    "too many requests": (
        {"answer": player(EN), "watch": MANY},
        errors.VideoTooManyRequests,
        ErrorClass.RATE_LIMIT,
    ),
    "too many at the end": ({"answer": player(EN), "text": MANY}, errors.VideoTooManyRequests, ErrorClass.RATE_LIMIT),
    "consent again and again": (
        {"answer": player(EN), "watch": page(CONSENT_PAGE)},
        errors.VideoConsent,
        ErrorClass.PERMANENT,
    ),
    "another page": (
        {"answer": player(EN), "watch": page("<p>New design!</p>")},
        errors.VideoUnreadable,
        ErrorClass.PERMANENT,
    ),
    "no JSON": ({"answer": page("oops")}, errors.VideoUnreadable, ErrorClass.PERMANENT),
    "no XML": ({"answer": player(EN), "text": page("<oops")}, errors.VideoUnreadable, ErrorClass.PERMANENT),
    "a proof that only players have": (
        {"answer": player(track("en", url="https://www.youtube.com/api/timedtext?v=x&exp=xpe"))},
        errors.VideoUnreadable,
        ErrorClass.PERMANENT,
    ),
    "a problem of theirs": ({"answer": Answer(503)}, errors.SiteFailed, ErrorClass.NETWORK),
    "a refusal": ({"answer": Answer(400)}, errors.PageRefused, ErrorClass.PERMANENT),
    "too large": ({"answer": player(EN), "text": page("x" * (2 << 20))}, errors.PageTooLarge, ErrorClass.VALIDATION),
}


@pytest.mark.parametrize(("routes", "expected", "error_class"), REFUSALS.values(), ids=REFUSALS.keys())
async def test_every_refusal_has_its_own_words_and_is_tried_again_only_where_that_can_help(
    site: Site, client: GuardedClient, routes: dict[str, Route], expected: type[OctavoError], error_class: ErrorClass
) -> None:
    stand_in(site, **routes)
    with pytest.raises(expected) as refused:
        await fetch(site, client)
    assert type(refused.value) is expected
    assert refused.value.error_class is error_class
    assert "youtube-transcript" not in refused.value.line
    assert refused.value.line.endswith(".")


async def test_the_wait_that_is_asked_for_is_kept(site: Site, client: GuardedClient) -> None:
    stand_in(site, player(EN), watch=MANY)
    with pytest.raises(errors.VideoTooManyRequests) as refused:
        await fetch(site, client)
    assert refused.value.retry_after_seconds == 77


async def test_a_silent_server_is_not_waited_for_longer_than_allowed(site: Site, client: GuardedClient) -> None:
    stand_in(site, player(EN), text=Answer(pieces=site.drip(b" ")))
    with pytest.raises(errors.PageTooSlow):
        await fetch(site, client, FetchLimits(1 << 20, 1))


async def test_no_answer_leads_inside(site: Site, client: GuardedClient) -> None:
    with canary() as inner:
        stand_in(site, player(track("en", url=f"http://127.0.0.1:{inner.port}/api/timedtext")))
        with pytest.raises(AddressRefused):
            await fetch(site, client)
        assert inner.visits() == 0
