"""Who somebody is: owners, the browsers that act for them, and links that make a browser theirs."""

from octavo.owners.sign_in import (
    SESSION_SECONDS,
    Owner,
    ensure_local_owner,
    make_sign_in_link,
    read_session,
    use_sign_in_link,
)

__all__ = ["SESSION_SECONDS", "Owner", "ensure_local_owner", "make_sign_in_link", "read_session", "use_sign_in_link"]
