"""Code that several formats share: secure XML and HTML parsing, OOXML packages, and assembling the result."""
