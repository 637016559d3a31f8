"""Live events: each web process reads them from the database once and sends them to all its open streams."""
