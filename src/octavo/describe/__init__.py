"""Describes documents whose text has been extracted: title, type, tags, chunk summaries and vectors.

Model calls are in `ai`, and the rules that can replace models are in `language`. This package decides what to request
and stores the results. Job kinds are in `pipeline`.
"""
