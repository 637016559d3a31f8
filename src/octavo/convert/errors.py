"""Errors for mappings and conversions. A `BadMapping` names the file, the field and the reason."""

from __future__ import annotations

from octavo.core.errors import BadInput, ErrorClass, GatewayFailed


class BadMapping(BadInput):
    """The mapping is invalid."""

    code = "BAD_MAPPING"


class SlowPattern(BadInput):
    """A pattern in the mapping takes too long on this document. Simplify it: avoid nested repeats such as (a+)+."""

    code = "SLOW_PATTERN"


class UnknownMapping(BadInput):
    """No mapping has this name."""

    code = "UNKNOWN_MAPPING"


class TooManyMappings(BadInput):
    """You have too many mappings. Delete some first."""

    code = "TOO_MANY_MAPPINGS"
    status = 409


class MappingTaken(BadInput):
    """A mapping with this name exists, and mappings cannot be edited. Save your changes under a new version."""

    code = "MAPPING_TAKEN"
    status = 409


class ShippedMapping(BadInput):
    """This mapping ships with Octavo and cannot be deleted."""

    code = "MAPPING_BUILT_IN"
    status = 409


class NotThisKind(BadInput):
    """This mapping does not fit: the file does not contain the keywords or values that the mapping requires. Try another mapping."""  # noqa: E501 - a message is one line

    code = "NOT_THIS_KIND"


class NothingFound(BadInput):
    """None of the required values were found in this document. Try another mapping."""

    code = "NOTHING_FOUND"


class Outdated(BadInput):
    """Somebody else corrected this conversion in the meantime. Reload it and try again."""

    code = "OUTDATED"
    status = 409


class Expired(BadInput):
    """This result has expired and was deleted. Convert the file again."""

    code = "EXPIRED"
    status = 410


class GatewayPaused(GatewayFailed):
    """The conversion service keeps failing, so requests to it are paused. They resume automatically."""

    error_class = ErrorClass.NETWORK
    status = 503


class GatewayStopped(GatewayFailed):
    """The conversion service keeps failing, so this file was not sent. Try again later."""

    error_class = ErrorClass.PERMANENT
    status = 503
