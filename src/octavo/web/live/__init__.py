"""Live events: one reader of the database for each web process, and the streams it feeds."""
