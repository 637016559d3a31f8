"""Finds facts in the words of a document: amounts, dates, numbers, parties, identifiers and items of an invoice.

Pure functions without a database, a file or a clock. `sheet.find_facts` is the entry point.
"""
