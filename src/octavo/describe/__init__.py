"""Generates the title, type, tags, summary and chunk summaries of documents whose text has been extracted, and their
vectors. Together, these are called the description of a document.

This package decides what to request and stores the results. The calls to models are in `ai`, the rules that work
without a model are in `language`, and the jobs are in `pipeline`.
"""
