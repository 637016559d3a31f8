"""OCR: recognises lines of text in images and puts them in reading order.

`recognition` runs the other modules in the sandbox.
"""
