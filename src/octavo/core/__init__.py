"""Words that every other package shares: ids, errors, settings. It imports nothing of ours."""
