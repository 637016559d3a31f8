"""The features of the web server, called rooms: one folder each, with API, pages, texts, templates, scripts and styles.

Rooms do not import each other. Code that several rooms need is in `octavo.web.shell` or in a lower layer.
"""
