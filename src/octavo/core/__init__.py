"""Types, errors, settings and utility functions that all packages share. Imports no other package of Octavo."""
