"""HTTP itself: problems, limits, security, forms, downloads, compression and assets. Knows no room."""
