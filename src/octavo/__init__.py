"""Octavo: a self-hosted platform that takes documents in, never loses one, and makes each useful."""


def __getattr__(name: str) -> str:
    """Looked up when asked for: reading the package's metadata would slow every start down."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("octavo")


__version__: str
