"""The bucket: stores files on this machine or in S3."""

from octavo.storage.bodies import Body
from octavo.storage.bucket import Bucket, ObjectInfo, ObjectStream, Stored, copy_to_file, find_damage, replace_damaged
from octavo.storage.errors import BadKey, LinkRefused, ObjectDamaged, ObjectMissing
from octavo.storage.opening import open_bucket
from octavo.storage.signed_links import Link, attachment_header

__all__ = [
    "BadKey",
    "Body",
    "Bucket",
    "Link",
    "LinkRefused",
    "ObjectDamaged",
    "ObjectInfo",
    "ObjectMissing",
    "ObjectStream",
    "Stored",
    "attachment_header",
    "copy_to_file",
    "find_damage",
    "open_bucket",
    "replace_damaged",
]
