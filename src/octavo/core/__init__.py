"""Types, errors, settings and small tools that every package shares. Imports no other package of Octavo."""
