"""Finds facts in a document's words: amounts, dates, numbers, parties, identifiers and invoice items.

The functions are pure: they use no database, file or clock. `sheet.find_facts` is the entry point.
"""
