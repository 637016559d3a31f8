"""The pages of this version. A new one is a file of its own and a line here."""

from octavo.web.pages import (
    account,
    actions,
    adding,
    appearance,
    connections,
    edit,
    history,
    keys,
    library,
    notifications,
    operations,
    operations_jobs,
    reader,
    search,
    settings,
    sign_in,
    sign_out,
    sign_up,
    versions,
    webhooks,
)

ROOMS = (settings, account, keys, webhooks, appearance)
PAGES = (
    library,
    search,
    reader,
    connections,
    edit,
    history,
    versions,
    adding,
    actions,
    notifications,
    *ROOMS,
    operations_jobs,
    operations,
    sign_in,
    sign_up,
    sign_out,
)
