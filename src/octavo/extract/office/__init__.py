"""Code shared by the formats: secure XML and HTML parsing, OOXML packages, and assembling the result."""
