"""Describes documents whose text has been extracted: title, type, tags, chunk summaries and vectors.

The models, and the offline rules that replace them, are in `ai` and `language`; this package decides what to request
and stores the results. Job kinds are in `pipeline`.
"""
