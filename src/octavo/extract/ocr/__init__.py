"""OCR: recognises lines of text in images and puts them in reading order. Pure except for the engine."""
