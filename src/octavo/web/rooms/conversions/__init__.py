"""Conversions of PDFs to XML, the review of their values, and the mappings."""

from octavo.web.rooms.conversions import api, mapping_api, mapping_pages, pages, review

ROUTERS = (
    pages.router,
    review.router,
    mapping_pages.router,
    api.router,
    mapping_api.router,
)
