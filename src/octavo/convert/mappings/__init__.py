"""Mappings: the fields of a type of document, how to find them, and their names in XML."""
