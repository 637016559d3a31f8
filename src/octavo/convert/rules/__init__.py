"""The rules: words with their places and a mapping in, values and XML out. Pure; imported only where they run."""
