"""PDFs to text. `pdf_file` is what other packages use; it runs the rest in the sandbox."""
