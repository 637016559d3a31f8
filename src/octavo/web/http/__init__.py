"""HTTP: errors, limits, security, forms, downloads, compression and assets, for all pages and API routes."""
