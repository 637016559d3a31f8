"""Code that several formats share: safe XML and HTML parsing, OOXML packages, and the assembly of results."""
