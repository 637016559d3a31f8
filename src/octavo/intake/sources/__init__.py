"""Sources of documents: watched folders, mailboxes, S3, WebDAV and feeds.

Every worker looks at sources regularly, and a row lock gives each source to one of them. A look only records what is
there. A job adds what is new, each in one transaction. Nothing is ever deleted, neither here nor at the source.
"""
