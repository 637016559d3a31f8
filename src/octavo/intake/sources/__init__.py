"""Sources of documents: watched folders, mailboxes, S3, WebDAV and feeds.

Every worker checks sources regularly. A row lock ensures that only one worker at a time checks a source. A check only
records the files of the source. A job then adds the new files, each in a separate transaction. Nothing is ever deleted
in Octavo or at the source.
"""
