"""Octavo: a self-hosted platform that takes documents in, never loses one, and makes each useful."""


def __getattr__(name: str) -> str:
    """Look up the version only when it is requested: reading the package's metadata would slow down every start."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version

    return version("octavo")


__version__: str
