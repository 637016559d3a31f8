"""FastAPI dependencies for routes, such as the caller, the shared services and the upload limits."""
