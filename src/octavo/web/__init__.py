"""The web server: pages for people and an API for programs, with one format for errors."""
