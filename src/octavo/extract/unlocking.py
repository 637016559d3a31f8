"""A PDF without its password: the same file, so that the password is needed once and by nobody after that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from octavo.sandbox import Sandbox, Task

PRELOAD = ("octavo.extract.pdf.document",)


async def unlock_in_sandbox(sandbox: Sandbox, path: Path, password: str, made: Path) -> bool:
    """Writes to `made` what the password opens. False for a file that opens without one; it is left as it is.

    Raises `Encrypted` for a wrong password.
    """
    with made.open("wb") as output:
        outcome = await sandbox.run(
            "octavo.extract.unlocking:run_unlock", {"password": password}, input_file=path, output_file=output
        )
    return outcome.value is True


def run_unlock(task: Task) -> bool:
    """What runs inside the sandbox."""
    # Imported late: only the sandbox needs the library.
    from octavo.extract.pdf.document import open_document

    with open_document(Path(task.input_path), str(task.arguments["password"])) as document:
        if not document.is_encrypted:
            return False
        document.save_unlocked(task.output)
        return True
