"""Reads the text of PDFs. Other packages use `pdf_file`, which runs the other modules in the sandbox."""
