"""Documents as pages of HTML: Markdown in, safe HTML out that knows where in the Markdown it came from.

Pure: nothing here reads a file, asks a database or knows of a request.
"""

from octavo.web.reading.leaves import Leaf, Passage, Place, arrange
from octavo.web.reading.marks import Mark, marks_of, usual_size
from octavo.web.reading.plan import Heading, Plan, Sheet, Window, make_plan
from octavo.web.reading.render import Block, render_window

__all__ = [
    "Block",
    "Heading",
    "Leaf",
    "Mark",
    "Passage",
    "Place",
    "Plan",
    "Sheet",
    "Window",
    "arrange",
    "make_plan",
    "marks_of",
    "render_window",
    "usual_size",
]
