"""The features of the web server.

Each feature has one folder, called a room, with its API, pages, texts, templates, scripts and styles. Rooms do not
import each other. Code that several rooms need is in `octavo.web.shell` or in a lower layer.
"""
