"""Pictures: opened with care, turned the right way up, and made small enough to show. Pure; runs in the sandbox."""
