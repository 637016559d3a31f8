"""Text from pictures: recognised lines, put in the order in which people read them. Pure but for the engine itself."""
