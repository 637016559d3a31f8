"""Opens images safely, rotates them upright and scales them down for display. Draws pages as images.

Other packages use `page_images` and `quotes`, which run the other modules in the sandbox.
"""

SHOWN_PIXELS = 2048  # the longest side of the copy that is stored for display
