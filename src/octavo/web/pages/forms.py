"""What forms of pages have in common: fields checked by the same models as the API's, and places to go back to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)
ANOTHER = "This cannot be used here."
_LOCAL = re.compile(r"/(?![/\\])[^\x00-\x20\x7f\\]{0,1000}")


def read_form(
    model: type[Model], given: Mapping[str, Any], sentences: Mapping[str, str]
) -> tuple[Model | None, dict[str, str]]:
    """What was filled in, or for each field that is wrong the sentence that stands beside it."""
    try:
        return model.model_validate(dict(given)), {}
    except ValidationError as error:
        fields = {str(one["loc"][0]) for one in error.errors()}
        return None, {field: sentences.get(field, ANOTHER) for field in sorted(fields)}


def local_path(address: str, otherwise: str = "/") -> str:
    """A place of ours to go to, however the address was written; anything else could lead to another site."""
    return address if _LOCAL.fullmatch(address) else otherwise
