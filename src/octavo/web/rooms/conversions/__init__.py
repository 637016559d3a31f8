"""Web pages and API for converting PDFs to XML, reviewing the extracted values, and managing mappings (the rules of a
conversion).
"""

from octavo.web.rooms.conversions import api, mapping_api, mapping_pages, pages, review
from octavo.web.rooms.conversions.api import DocumentToConvert

__all__ = ["ROUTERS", "DocumentToConvert"]
ROUTERS = (
    pages.router,
    review.router,
    mapping_pages.router,
    api.router,
    mapping_api.router,
)
