"""The HTTP layer of all pages and API routes: errors, limits, security, forms, downloads, compression and assets."""
