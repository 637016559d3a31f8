"""What routes that bring files in work with."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from octavo.convert.submissions import ConversionIntake
from octavo.core.settings import Settings
from octavo.extract.detect import detect
from octavo.intake import Intake, IntakeLimits
from octavo.web.parts import Parts, PartsOf, Writing


def intake_of(parts: PartsOf) -> Intake:
    return Intake(parts.database, parts.bucket, detect)


def limits_of(parts: PartsOf, caller: Writing) -> IntakeLimits:
    return intake_limits(parts.settings, anonymous=caller.is_anonymous)


def intake_limits(settings: Settings, *, anonymous: bool) -> IntakeLimits:
    """What this kind of owner may bring in; without an account it is less."""
    stored = settings.anonymous_stored_bytes if anonymous else settings.stored_bytes
    return IntakeLimits(
        upload_bytes=settings.upload_bytes,
        stored_bytes=stored or None,
        concurrent=settings.anonymous_concurrent_uploads if anonymous else settings.concurrent_uploads,
    )


def conversion_intake(parts: Parts, limits: IntakeLimits) -> ConversionIntake:
    """A service elsewhere may take less than we do; what it would refuse is refused at once."""
    settings = parts.settings
    most = limits.upload_bytes
    if settings.conversion_gateway_url:
        most = min(most, settings.conversion_gateway_bytes)
    return ConversionIntake(parts.database, parts.bucket, most, settings.conversion_source_days, limits.stored_bytes)


IntakeOf = Annotated[Intake, Depends(intake_of)]
LimitsOf = Annotated[IntakeLimits, Depends(limits_of)]
