"""The bucket: where the bytes of documents are, on this machine or in S3."""

from octavo.storage.bodies import Body
from octavo.storage.bucket import Bucket, ObjectInfo, ObjectStream, Stored
from octavo.storage.copies import copy_to_file
from octavo.storage.errors import BadKey, LinkRefused, ObjectMissing
from octavo.storage.links import Link, attachment_header
from octavo.storage.opening import open_bucket

__all__ = [
    "BadKey",
    "Body",
    "Bucket",
    "Link",
    "LinkRefused",
    "ObjectInfo",
    "ObjectMissing",
    "ObjectStream",
    "Stored",
    "attachment_header",
    "copy_to_file",
    "open_bucket",
]
