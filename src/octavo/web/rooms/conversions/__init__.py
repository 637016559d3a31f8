"""Conversion of PDFs to XML, review of the extracted values, and mappings (the rules of a conversion)."""

from octavo.web.rooms.conversions import api, mapping_api, mapping_pages, pages, review

ROUTERS = (
    pages.router,
    review.router,
    mapping_pages.router,
    api.router,
    mapping_api.router,
)
