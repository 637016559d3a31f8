"""HTTP code for all pages and API routes: errors, limits, security, forms, downloads, compression and assets."""
