"""The rules: they turn words with places, and a mapping, into values and XML. Pure; imported only where they run."""
