"""The public shapes of the API, declared once: the server returns them and the client reads them.

A record here is what a route answers, field by field. The package imports only `octavo.core`, so that the client stays
light.
"""
