"""FastAPI dependencies of routes, such as the caller, the shared services and the limits for uploads."""
