"""The engine: leased, fenced, checkpointed units of work on PostgreSQL. It knows nothing of documents."""
