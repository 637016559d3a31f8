"""OCR: recognises lines in images and puts them in reading order. Pure except for the engine."""
