"""Opens images safely, rotates them upright and scales them down for display. Draws pages and quotes as images.

Other packages use `picture_file`, `page_images` and `quotes`, which run the other modules in the sandbox.
"""

SHOWN_PIXELS = 2048  # the longest side of the copy that is stored for display
