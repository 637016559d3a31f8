"""An example of an extension of Octavo."""
