"""Owners (accounts that documents belong to), and the people, browsers and programs that act for them."""

from octavo.owners.callers import Caller, Role, Scope, read_key
from octavo.owners.sessions import (
    SESSION_SECONDS,
    ensure_local_owner,
    is_sign_in_link,
    local_owner,
    make_sign_in_link,
    open_anonymous_session,
    read_session,
    sign_in_url,
    use_sign_in_link,
)

__all__ = [
    "SESSION_SECONDS",
    "Caller",
    "Role",
    "Scope",
    "ensure_local_owner",
    "is_sign_in_link",
    "local_owner",
    "make_sign_in_link",
    "open_anonymous_session",
    "read_key",
    "read_session",
    "sign_in_url",
    "use_sign_in_link",
]
