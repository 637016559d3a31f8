"""The types that a field can have. One file each, and a line in the registry: what it looks like, and its one form."""

from octavo.convert.types.registry import FIELD_TYPES, FieldType, Found, Habits

__all__ = ["FIELD_TYPES", "FieldType", "Found", "Habits"]
