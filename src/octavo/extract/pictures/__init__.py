"""Pictures: opened with care, turned the right way up, and made small enough to show. Pure; runs in the sandbox."""

SHOWN_PIXELS = 2048  # the longest side of the copy that is kept for screens
