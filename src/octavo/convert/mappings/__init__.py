"""Mappings are rules for converting a type of document: its fields, how to find them, and their names in XML."""
