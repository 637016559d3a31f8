"""The library: the list of documents, adding, editing, versions, the trash, and the API for documents and uploads."""

from octavo.web.rooms.library import (
    actions,
    adding,
    api,
    collections,
    edit,
    exports,
    pages,
    upload_api,
    versions,
)
from octavo.web.rooms.library.upload_api import SOURCES

__all__ = ["ROUTERS", "SOURCES"]
ROUTERS = (
    pages.router,
    edit.router,
    collections.pages,
    versions.router,
    adding.router,
    actions.router,
    upload_api.router,
    api.router,
    exports.router,
    versions.api_router,
    collections.router,
)
