"""Which server a command uses, and that nobody else can read the keys of the profiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from octavo.cli.remote import Profile, Profiles, Target, find_server, profiles_file
from octavo.core.errors import BadSetting, StorageFailed
from octavo.core.settings import Settings

WORK = Profile("https://docs.example.org", "octavo_work")
HOME = Profile("http://10.0.0.2:8400", "octavo_home")


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return tmp_path


def settings(**given: Any) -> Settings:  # noqa: ANN401 - values of settings
    return Settings(data_dir=Path("/nowhere"), **given)


def save(current: str | None = "work") -> None:
    Profiles(current, {"work": WORK, "home": HOME}).save()


def test_profiles_are_kept_where_only_their_owner_reads_them(config: Path) -> None:
    assert Profiles.load() == Profiles()
    save()
    assert Profiles.load() == Profiles("work", {"work": WORK, "home": HOME})
    assert profiles_file().is_relative_to(config)
    assert profiles_file().stat().st_mode & 0o777 == 0o600
    assert [one.name for one in profiles_file().parent.iterdir()] == ["profiles.json"]
    assert "octavo_work" not in repr(Profiles.load())


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_keys_that_others_can_read_are_not_used(mode: int) -> None:
    save()
    profiles_file().chmod(mode)
    with pytest.raises(BadSetting, match="chmod 600"):
        find_server(Target(), settings())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"current": null, "profiles": {"a": {"server": "x"}}}', "\x00"])
def test_a_damaged_file_is_reported(text: str) -> None:
    save()
    profiles_file().write_text(text)
    with pytest.raises(BadSetting, match="cannot be read"):
        Profiles.load()


def test_a_folder_that_cannot_be_written_is_reported(config: Path) -> None:
    (config / "octavo").write_text("a file")
    with pytest.raises(StorageFailed, match=r"profiles\.json"):
        save()


def test_without_a_profile_commands_use_this_machine() -> None:
    assert find_server(Target(), settings()) == Target()
    assert find_server(Target(key="octavo_1"), settings()) == Target(None, "octavo_1")


def test_the_current_profile_is_used_unless_something_else_is_named() -> None:
    save()
    assert find_server(Target(), settings()) == Target(WORK.server, WORK.key)
    assert find_server(Target("home"), settings()) == Target(HOME.server, HOME.key)
    assert find_server(Target("home", "octavo_2"), settings()) == Target(HOME.server, "octavo_2")
    assert find_server(Target(), settings(server="home")) == Target(HOME.server, HOME.key)
    assert find_server(Target("local"), settings()) == Target()
    by_variables = settings(server="https://other.example", key=SecretStr("octavo_3"))
    assert find_server(Target(), by_variables) == Target("https://other.example", "octavo_3")
    assert find_server(Target(), settings(key=SecretStr("octavo_3"))) == Target(None, "octavo_3")


def test_the_key_of_a_profile_is_never_sent_to_another_server() -> None:
    save()
    with pytest.raises(BadSetting, match="requires an API key"):
        find_server(Target("https://other.example"), settings())


def test_an_unknown_profile_is_refused_with_those_that_exist() -> None:
    save()
    with pytest.raises(BadSetting, match="known: home, work"):
        find_server(Target("wrok"), settings())
