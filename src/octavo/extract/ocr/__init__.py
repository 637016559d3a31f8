"""OCR: recognises lines of text in images and puts them in reading order. All code except the Tesseract calls
is pure.
"""
