"""HTTP: errors, limits, security, forms, downloads, compression and assets. Independent of all rooms."""
