"""Errors of sign-in, invitations, links and the second factor."""

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
    """This is your only way to sign in. Set a password first."""

    code = "LAST_SIGN_IN"
    error_class = ErrorClass.PERMANENT
    status = 409


class LinkRefused(BadInput):
    """This link is invalid, expired or already used. Ask for a new one."""

    code = "ACCOUNT_LINK_REFUSED"
    error_class = ErrorClass.PERMANENT
    status = 403


class CodeRequired(BadInput):
    """Enter the code from your authenticator app."""

    code = "SECOND_FACTOR_REQUIRED"
    error_class = ErrorClass.PERMANENT
    status = 401


class WrongCode(BadInput):
    """Wrong code. A code works once, for about a minute."""

    code = "WRONG_CODE"
    error_class = ErrorClass.PERMANENT
    status = 401


class NoSecondFactor(BadInput):
    """Set up an authenticator app first."""

    code = "NO_SECOND_FACTOR"
    error_class = ErrorClass.PERMANENT
    status = 409


class OwnerSeesAll(BadInput):
    """Members with the role owner see all collections. Choose another role first."""

    code = "OWNER_SEES_ALL"
    error_class = ErrorClass.PERMANENT
    status = 409


class GroupNameTaken(BadInput):
    """A group with this name already exists."""

    code = "GROUP_NAME_TAKEN"
    error_class = ErrorClass.PERMANENT
    status = 409
