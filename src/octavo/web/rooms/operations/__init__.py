"""Web pages for administrators: health, jobs, failed jobs, workers and schedules. Also contains the API for jobs."""

from octavo.web.rooms.operations import api, job_pages, pages

ROUTERS = (
    job_pages.router,
    pages.router,
    api.jobs_router,
    api.imports_router,
    api.router,
)
