"""FastAPI dependencies that routes declare: shared services, the caller, and the limits for uploads."""
