from __future__ import annotations

from datetime import UTC, datetime

from octavo.storage.s3_client import AccessKeys, presign


def test_amazons_own_example() -> None:
    """The example in "Authenticating Requests: Using Query Parameters" of Amazon's S3 reference."""
    url = presign(
        "GET",
        "https://examplebucket.s3.amazonaws.com/test.txt",
        {},
        AccessKeys("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        region="us-east-1",
        seconds=86_400,
        now=datetime(2013, 5, 24, tzinfo=UTC),
    )
    assert url.endswith("&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")


def test_the_secret_is_not_shown() -> None:
    assert "hidden" not in repr(AccessKeys("shown", "hidden"))
