"""OCR: recognises lines of text in images and puts them in reading order. Only the engine is not pure."""
