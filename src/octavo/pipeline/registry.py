"""All job kinds of this version. A new kind is a file of its own and a line here."""

from __future__ import annotations

from octavo.jobs.kinds import Kinds
from octavo.pipeline import demo
from octavo.pipeline.tools import Tools


def known_kinds() -> Kinds[Tools]:
    kinds: Kinds[Tools] = Kinds()
    kinds.add(demo.KIND)
    return kinds
