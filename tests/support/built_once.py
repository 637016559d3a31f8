"""Builds once for each process what the product builds for each command or client, and what never differs."""

# pyright: reportPrivateImportUsage=false
# A part of the library that has no public name.

from __future__ import annotations

from functools import cache

import httpx._transports.default
import typer.main


def build_once() -> None:
    """The tree of commands takes 45 ms of processor time, the list of trusted certificates 25 ms."""
    typer.main.get_command = cache(typer.main.get_command)
    transports = httpx._transports.default
    httpx.create_ssl_context = transports.create_ssl_context = cache(transports.create_ssl_context)
