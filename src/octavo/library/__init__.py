"""An owner's documents after they came in: reading, editing, trash, and what happens to them on request."""
