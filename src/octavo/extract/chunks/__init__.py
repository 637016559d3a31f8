"""Makes more of extracted text. Pure modules, and one `steps.py` that reads and writes."""
