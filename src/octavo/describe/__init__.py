"""Generates descriptions of documents whose text has been extracted.

A description consists of the title, type, tags, summary, chunk summaries and vectors.

This package decides what to request and stores the results. The calls to models are in `ai`, the rules that work
without a model are in `language`, and the jobs are in `pipeline`.
"""
