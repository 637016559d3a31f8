"""Errors of signing in, of invitations and of shares."""

from __future__ import annotations

from octavo.core.errors import BadInput, ErrorClass, OctavoError


class ProviderRefused(BadInput):
    """Signing in with the provider failed."""

    code = "PROVIDER_REFUSED"
    error_class = ErrorClass.PERMANENT
    status = 403


class ProviderFailed(OctavoError):
    """The sign-in provider could not be reached or sent an invalid response. Try again later."""

    code = "PROVIDER_FAILED"
    error_class = ErrorClass.TRANSIENT
    status = 502


class IdentityTaken(BadInput):
    """This identity is already connected to another account."""

    code = "IDENTITY_TAKEN"
    error_class = ErrorClass.PERMANENT
    status = 409


class LastSignIn(BadInput):
    """Without this, you could no longer sign in. Set a password first."""

    code = "LAST_SIGN_IN"
    error_class = ErrorClass.PERMANENT
    status = 409
