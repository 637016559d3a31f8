"""What passages of an owner's documents have to do with each other: engines (pure), candidates, what is kept."""
