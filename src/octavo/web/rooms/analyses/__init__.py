"""Web pages and API for analyses: run prompts on whole documents, show the results, and manage the prompts."""

from octavo.web.rooms.analyses import api, pages, prompt_pages

ROUTERS = (
    pages.router,
    prompt_pages.router,
    api.prompts_router,
    api.router,
)
