"""Octavo: a self-hosted platform that takes documents in, never loses one, and makes each useful."""

from importlib.metadata import version

__version__ = version("octavo")
