"""The web server, with pages for people and an API for programs."""
