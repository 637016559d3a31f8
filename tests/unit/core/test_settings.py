"""Settings come from one typed table; what is not in it is refused, with advice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from octavo.core.errors import BadSetting
from octavo.core.settings import Settings, load_settings, variable_name

REFERENCE = Path(__file__).parents[3] / "docs/reference/settings.md"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("field", Settings.model_fields)
def test_every_setting_is_described_in_the_table_and_in_the_reference(field: str) -> None:
    assert Settings.model_fields[field].description
    assert f"`{variable_name(field)}`" in REFERENCE.read_text()


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "octavo.toml").write_text('port = 9000\nhost = "::1"\n')
    monkeypatch.setenv("OCTAVO_PORT", "9001")
    settings = load_settings()
    assert (settings.port, settings.host) == (9001, "::1")


def test_a_named_file_is_read_instead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other.toml").write_text("port = 9002\n")
    monkeypatch.setenv("OCTAVO_CONFIG", str(tmp_path / "other.toml"))
    assert load_settings().port == 9002


def test_a_relative_data_folder_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_DATA_DIR", "here")
    assert load_settings().data_dir == tmp_path / "here"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("OCTAVO_PROT", "1", "Unknown setting OCTAVO_PROT. Did you mean OCTAVO_PORT?"),
        ("OCTAVO_ZZZZZ", "1", "`octavo settings` lists all"),
        ("OCTAVO_PORT", "eighty", "OCTAVO_PORT: "),
        ("OCTAVO_PORT", "70000", "OCTAVO_PORT: "),
        ("OCTAVO_DATABASE_URL", "mysql://x", "OCTAVO_DATABASE_URL: must look like postgresql://"),
        ("OCTAVO_STORAGE_URL", "ftp://x/y", "OCTAVO_STORAGE_URL: must look like s3://"),
        ("OCTAVO_STORAGE_URL", "s3:///prefix", "OCTAVO_STORAGE_URL: must look like s3://"),
        ("OCTAVO_S3_ENDPOINT", "localhost:9000", "OCTAVO_S3_ENDPOINT: must look like http://"),
        ("OCTAVO_FETCH_ALLOW", '["127.0.0.1"]', "Invalid setting. OCTAVO_FETCH_ALLOW: must be hosts with ports"),
        ("OCTAVO_CONFIG", "/no/such/file", "OCTAVO_CONFIG points to /no/such/file"),
    ],
)
def test_a_wrong_setting_is_one_line_that_says_what_to_do(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadSetting) as refused:
        load_settings()
    assert said in refused.value.line
    assert "\n" not in refused.value.line
    assert refused.value.line.count("OCTAVO_") <= said.count("OCTAVO_") + 1  # what follows from an error is not listed


@pytest.mark.parametrize(
    ("text", "said"),
    [("prot = 1\n", "Did you mean port?"), ("port = \n", "octavo.toml cannot be read")],
)
def test_a_wrong_file_is_refused_with_advice(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "octavo.toml").write_text(text)
    with pytest.raises(BadSetting) as refused:
        load_settings()
    assert said in refused.value.line


def test_a_secret_is_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_DATABASE_URL", "postgresql://octavo:canary@localhost/octavo")
    assert "canary" not in repr(load_settings())
    monkeypatch.setenv("OCTAVO_DATABASE_URL", "mysql://octavo:canary@localhost/octavo")
    with pytest.raises(BadSetting) as refused:
        load_settings()
    assert "canary" not in str(refused.value)


@pytest.mark.parametrize(
    ("chosen", "allowed"),
    [
        ({}, True),
        ({"host": "localhost"}, True),
        ({"host": "::1"}, True),
        ({"host": "127.0.0.9"}, True),
        ({"host": "0.0.0.0"}, False),
        ({"host": "::"}, False),
        ({"host": "192.0.2.7"}, False),
        ({"host": "nas.example"}, False),
        ({"host": "0.0.0.0", "anonymous": True, "sign_up": True}, True),
    ],
)
def test_visitors_and_new_accounts_are_refused_on_a_network_unless_they_are_allowed(
    chosen: dict[str, Any], allowed: bool
) -> None:
    settings = Settings(**chosen)
    assert (settings.anonymous, settings.sign_up) == (allowed, allowed)
