"""Settings that are lists: with commas in the environment, as lists in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from octavo.core.errors import BadSetting
from octavo.core.settings import load_settings


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("value", "hosts"),
    [
        ("", ()),
        ("docs.example.org", ("docs.example.org",)),
        (" Docs.example.org , nas,,2001:db8::7 ", ("docs.example.org", "nas", "2001:db8::7")),
    ],
)
def test_a_list_is_written_with_commas(value: str, hosts: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_HOSTS", value)
    assert load_settings().hosts == hosts


def test_a_list_in_the_file_is_a_list(tmp_path: Path) -> None:
    (tmp_path / "octavo.toml").write_text('origins = ["chrome-extension://abc", "https://x.example:8443/"]\n')
    assert load_settings().origins == ("chrome-extension://abc", "https://x.example:8443")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("OCTAVO_HOSTS", value) for value in ("*", "https://docs.example.org", "docs.example.org:443", "a b", "a/b")),
        *(
            ("OCTAVO_ORIGINS", value)
            for value in ("*", "null", "docs.example.org", "https://*.example.org", "https://")
        ),
    ],
)
def test_what_would_allow_anybody_or_nobody_is_refused(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadSetting, match=f"{name}: must "):
        load_settings()
