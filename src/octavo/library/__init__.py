"""An account's documents: reading, editing, retries, versions, collections and the trash."""
