"""Web pages and API for accounts: sign-up, sign-in and sign-out, members, API keys and appearance."""

from octavo.web.rooms.account import access_pages, api, audit, grants, pages, people_api, provider_pages, sign_in_pages

ROUTERS = (
    pages.router,
    pages.keys_router,
    pages.appearance_router,
    pages.language_router,
    pages.users_router,
    sign_in_pages.router,
    provider_pages.router,
    access_pages.links_router,
    access_pages.router,
    api.router,
    api.keys_router,
    api.members_router,
    api.users_router,
    grants.groups_router,
    grants.grants_router,
    people_api.invitations_router,
    people_api.sessions_router,
    people_api.reset_router,
    grants.router,
    audit.router,
    audit.pages_router,
)
