"""An owner's documents: reading, editing, retrying, versions, collections and the trash."""
