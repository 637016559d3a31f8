"""One folder for each part of the product, with its API, pages, texts, templates, scripts and styles.

Rooms do not import each other; what two of them need is in the shell or below it.
"""
