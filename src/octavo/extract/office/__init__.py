"""What the formats of office programs share: careful XML, Markdown from runs, lists and tables, and the result."""
