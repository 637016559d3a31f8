"""Mappings: the fields of a kind of document, how to find them, and their names in XML."""
