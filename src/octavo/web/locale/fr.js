// Written by `make catalogues` from the catalogue.
globalThis.octavoTexts = { plural: (n) => Number((n > 1)), texts: {"%(number)s document": ["", ""], "%(number)s document changed.": ["", ""], "%(number)s document moved to the trash.": ["", ""], "%(number)s document queued again.": ["", ""], "Discard %(number)s failed job?": ["", ""], "Show %(number)s new document": ["", ""]} };
