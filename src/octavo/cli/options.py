"""Options that commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from octavo.core.types import Extraction

AsJson = Annotated[bool, typer.Option("--json", help="Print data for programs.")]
Cursor = Annotated[str | None, typer.Option(help="Go on after a page: its `next_cursor`.")]
Server = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Another server than this machine's; also OCTAVO_SERVER.", show_default=False),
]
Key = Annotated[
    str | None,
    typer.Option(metavar="KEY", help="API key for it; better as OCTAVO_KEY, which other users do not see."),
]
Documents = Annotated[
    list[str],
    typer.Argument(metavar="ID", help="Documents, by four or more characters of the beginning or end of their ids."),
]
HowToRead = Annotated[
    Extraction,
    typer.Option(
        help="Who makes the text. plain: as the file has it; clean: a model puts it in order; pages: a model reads the "
        "pages. Both cost money, and the plain text is kept.",
    ),
]
