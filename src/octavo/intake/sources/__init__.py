"""Sources of documents: watched folders, mailboxes, S3, WebDAV and feeds.

Every worker checks sources regularly, and a row lock ensures that only one worker checks a source. A check only records
the files of the source. A job adds the new files, each in one transaction. Nothing is ever deleted, neither here nor at
the source.
"""
