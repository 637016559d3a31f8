"""Settings about mail and links are refused when they cannot work, without showing a password."""

from __future__ import annotations

import pytest

from octavo.core.errors import BadSetting
from octavo.core.settings import load_settings


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"SMTP_URL": "mail.example.org"}, "must look like smtp://"),
        ({"SMTP_URL": "http://u:hidden@mail.example.org"}, "must look like smtp://"),
        ({"SMTP_URL": "smtp://u:hidden@host:99999"}, "must look like smtp://"),
        ({"MAIL_FROM": "Octavo <octavo@example.org>"}, "must look like name@example.org"),
        ({"MAIL_FROM": "a@b\nBcc: c@d"}, "must look like name@example.org"),
        ({"ADMIN_MAIL": "ops@example.org"}, "requires a mail server in OCTAVO_SMTP_URL"),
        ({"ADMIN_SLACK": "hooks.example.org"}, "must look like https://host/path"),
        ({"PUBLIC_URL": "docs.example.org"}, "must look like https://docs.example.org"),
        ({"DELIVERY_SECONDS": "0"}, "greater than 0"),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused_with_what_would(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], said: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"OCTAVO_{name}", value)
    with pytest.raises(BadSetting, match=said) as raised:
        load_settings()
    assert "hidden" not in str(raised.value)


def test_a_mail_server_and_an_administrator_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCTAVO_SMTP_URL", "smtp+starttls://u:hidden@mail.example.org")
    monkeypatch.setenv("OCTAVO_ADMIN_MAIL", "ops@example.org")
    monkeypatch.setenv("OCTAVO_PUBLIC_URL", "https://docs.example.org/")
    settings = load_settings()
    assert (settings.admin_mail, settings.public_url) == ("ops@example.org", "https://docs.example.org")
    assert "hidden" not in repr(settings)
