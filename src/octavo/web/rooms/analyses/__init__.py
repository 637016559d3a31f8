"""Analyses: prompts run on whole documents, their results, and the prompts themselves."""

from octavo.web.rooms.analyses import api, pages, prompt_pages

ROUTERS = (
    pages.router,
    prompt_pages.router,
    api.prompts_router,
    api.router,
)
