"""The record types of the public API. The server returns them, and the client reads them.

The fields of a record are the fields of the JSON. The package imports only `octavo.core`, so that the client stays
small.
"""
