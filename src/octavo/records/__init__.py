"""The record types of the public API. The server returns them, and the client reads them.

A record has the same fields as its JSON. The package imports only `octavo.core`, so that the client stays
small.
"""
