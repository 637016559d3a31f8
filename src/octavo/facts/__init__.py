"""Finds facts in the words of a document: amounts, dates, numbers, parties, identifiers and items of an invoice.

The functions are pure: they use no database, file or clock. `sheet.find_facts` is the entry point.
"""
