"""Sources are checked before they are added."""

from __future__ import annotations

import pytest

from octavo.intake.errors import BadSource
from octavo.intake.sources.places import check_move
from octavo.records.automation import SourceOptions


@pytest.mark.parametrize(("mailbox", "move_to"), [("INBOX", "inbox"), ("Bills%20%26%20more", "Bills & more")])
def test_mails_are_not_moved_to_the_mailbox_that_is_watched(mailbox: str, move_to: str) -> None:
    address = f"imaps://ann%40example.org@mail.example.org:993/{mailbox}"
    with pytest.raises(BadSource):
        check_move(address, SourceOptions(after="move", move_to=move_to))
    check_move(address, SourceOptions(after="move", move_to="Done"))
    check_move(address, SourceOptions(after="seen", move_to=move_to))
