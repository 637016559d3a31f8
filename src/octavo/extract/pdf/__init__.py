"""PDFs to text. `reader` has all of it; it is for the sandbox, so that nothing else loads what parses files."""
