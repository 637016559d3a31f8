"""An owner's documents: reading, editing, retries, versions, collections and the trash."""
