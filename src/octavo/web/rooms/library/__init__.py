"""The library: pages and API for listing, adding, editing, comparing, exporting and deleting documents."""

from octavo.web.rooms.library import (
    actions,
    adding,
    api,
    bulk,
    collections,
    edit,
    exports,
    pages,
    transfers,
    upload_api,
    versions,
)
from octavo.web.rooms.library.adding import SOURCES

__all__ = ["ROUTERS", "SOURCES"]
ROUTERS = (
    pages.router,
    edit.router,
    exports.links,
    exports.page_router,
    collections.pages,
    versions.router,
    adding.router,
    upload_api.share_router,
    actions.router,
    upload_api.router,
    bulk.pages,
    bulk.router,  # before the routes of one document
    api.router,
    exports.router,
    versions.api_router,
    collections.router,
    transfers.router,
)
