"""Octavo: a self-hosted platform that stores documents safely and turns each one into clean, connected Markdown."""


def __getattr__(name: str) -> str:
    """Compute `__version__` when it is used, because reading package metadata at import would slow down every start."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("octavo")


__version__: str
