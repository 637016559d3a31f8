"""Reads files of formats that extensions add.

The entry point is named after the suffix of the file, such as `.ics`. It is a function that takes the path of the file
and returns Markdown. It runs in the sandbox.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath

from octavo.core.errors import ExtensionFailed, NotSupported, OctavoError
from octavo.core.extensions import ExtensionKind, load_extension
from octavo.extract.extracted import Extracted, SourceType
from octavo.extract.formats.text import from_markdown
from octavo.extract.registry import Hints, Processor


def extract(path: Path, hints: Hints) -> Extracted:
    suffix = PurePosixPath(hints.filename.lower()).suffix
    read = load_extension(ExtensionKind.FORMAT, suffix)
    if read is None:
        raise NotSupported(f"The extension that reads {suffix or 'these'} files is not installed.")
    try:
        markdown = read(path)
    except OctavoError:
        raise
    except Exception as error:
        raise ExtensionFailed(f"Reading the {suffix} file failed with {type(error).__name__}.") from error
    if not isinstance(markdown, str):
        raise ExtensionFailed(f"The extension for {suffix} files did not return text.")
    return replace(from_markdown(markdown), source_type=SourceType.EXTENSION)


PROCESSOR = Processor((SourceType.EXTENSION,), extract)
