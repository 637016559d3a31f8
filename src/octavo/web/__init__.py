"""The web server: pages for people, routes for programs, one form for errors."""

from octavo.web.app import create_app

__all__ = ["create_app"]
