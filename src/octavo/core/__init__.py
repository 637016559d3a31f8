"""Types, errors, settings and small tools that all packages share. Imports no other package of Octavo."""
