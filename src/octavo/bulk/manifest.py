"""Lists the files of a folder or bucket in a manifest, and finds the shards of a run.

The results of a run are in one folder or bucket. Every object in it is written only once. It contains these objects:

- `manifest.parquet`: all files, with one row group for each shard
- `shards/000012.parquet`: the results of one shard
- `sources/ab/<SHA-256>`: the bytes of each file
"""

from __future__ import annotations

import io
import os
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError

from octavo.core.errors import AlreadyStored, BadInput, NotFound, NotPossibleHere
from octavo.core.settings import Settings
from octavo.storage import Bucket, open_bucket
from octavo.storage.s3_client import AccessKeys, S3Address, explain, is_missing_bucket, open_store

if TYPE_CHECKING:
    from obstore.store import S3Store

MANIFEST, SHARDS, SOURCES = "manifest.parquet", "shards", "sources"
# A shard ends at this number of files or bytes. A larger file has its own shard.
SHARD_FILES, SHARD_BYTES = 500, 512 << 20
# The largest manifest or shard that is read into memory.
READ_BYTES = 4 << 30
BLOCK_BYTES = 1 << 20
PAGE_KEYS = 1000
SOURCE_NAME = b"octavo_source"
NOT_INSTALLED = "The bulk commands need extra packages. Install them with `make bulk`, or `pip install octavo[bulk]`."


class NotPlanned(BadInput):
    """There is no plan here yet. Run `octavo bulk plan` or `octavo bulk run` first."""

    code = "NOT_PLANNED"


def require_packages() -> None:
    """Raise an error with advice if the packages of `octavo[bulk]` are not installed."""
    if not (find_spec("daft") and find_spec("pyarrow")):
        raise NotPossibleHere(NOT_INSTALLED)


def extra_module(name: str) -> Any:  # noqa: ANN401 - these packages have no types, and are not always installed
    """Import a module of an optional package that `octavo[bulk]` installs."""
    return import_module(name)


# Locations ----------------------------------------------------------------------------------------------------------


def as_url(named: str) -> str:
    """Convert the path of a folder to a `file://` URL. `s3://` and `file://` URLs are returned unchanged."""
    return named if urlsplit(named).scheme in {"s3", "file"} else Path(named).expanduser().resolve().as_uri()


def open_place(url: str, settings: Settings) -> Bucket:
    """Open the folder or bucket of a run. A bucket is opened with the S3 settings of the installation."""
    return open_bucket(url, endpoint=settings.s3_endpoint, region=settings.s3_region, **_keys(settings))


def _keys(settings: Settings) -> dict[str, str | None]:
    pair = {"access_key": settings.s3_access_key, "secret_key": settings.s3_secret_key}
    return {name: secret.get_secret_value() if secret else None for name, secret in pair.items()}


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file to read. `key` is its path in the folder, or its key in the bucket."""

    key: str
    bytes: int
    etag: str

    @property
    def name(self) -> str:
        return self.key.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class Copied:
    """The size and SHA-256 hash of a file that was copied to this machine."""

    bytes: int
    sha256: str


class FolderFiles:
    """The files of a folder. Hidden files and symbolic links are skipped."""

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise BadInput(f"{folder} is not a folder.")
        self._folder = folder

    def list(self) -> Iterator[PlannedFile]:
        for folder, names, files in os.walk(self._folder):
            names[:] = sorted(name for name in names if not name.startswith("."))
            for path in sorted(Path(folder, name) for name in files if not name.startswith(".")):
                if path.is_file() and not path.is_symlink():
                    about, key = path.stat(), path.relative_to(self._folder).as_posix()
                    _refuse_undecodable(key)
                    yield PlannedFile(key, about.st_size, f"{about.st_size:x}-{about.st_mtime_ns:x}")

    def copy(self, key: str, target: Path) -> Copied:
        try:
            with (self._folder / key).open("rb") as file:
                return _write(iter(lambda: file.read(BLOCK_BYTES), b""), target)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
            if not any(self._folder.iterdir()):  # the drive is not mounted
                raise
            raise NotFound(f"The file cannot be read: {error.strerror}.") from None


def _refuse_undecodable(key: str) -> None:
    try:
        key.encode()
    except UnicodeEncodeError:
        shown = os.fsencode(key).decode(errors="replace")
        raise BadInput(f"This file name is not valid UTF-8: {shown}. Rename the file.") from None


class BucketFiles:
    """The objects of an S3 bucket below a prefix. Their keys can contain any characters."""

    def __init__(self, url: str, settings: Settings) -> None:
        parts, keys = urlsplit(url), _keys(settings)
        self._address = S3Address(parts.netloc, parts.path.strip("/"), settings.s3_endpoint, settings.s3_region)
        pair = AccessKeys(keys["access_key"], keys["secret_key"]) if keys["access_key"] and keys["secret_key"] else None
        self._store: S3Store = open_store(self._address, pair, timeout=timedelta(minutes=15))

    def list(self) -> Iterator[PlannedFile]:
        try:
            pages = obstore.list(self._store, chunk_size=PAGE_KEYS)  # pyright: ignore[reportUnknownMemberType]
            for page in pages:
                for meta in page:
                    if not any(part.startswith(".") for part in meta["path"].split("/")):
                        yield PlannedFile(meta["path"], meta["size"], meta["e_tag"] or "")
        except (BaseError, FileNotFoundError) as error:
            raise explain(error, self._address) from None

    def copy(self, key: str, target: Path) -> Copied:
        try:
            return _write((bytes(block) for block in obstore.get(self._store, key).stream(BLOCK_BYTES)), target)
        except (BaseError, FileNotFoundError) as error:
            if isinstance(error, FileNotFoundError) and not is_missing_bucket(error):
                raise NotFound("The object no longer exists.") from None
            raise explain(error, self._address) from None


SourceFiles = FolderFiles | BucketFiles


def open_source(url: str, settings: Settings) -> SourceFiles:
    parts = urlsplit(url)
    return BucketFiles(url, settings) if parts.scheme == "s3" else FolderFiles(Path(unquote(parts.path)))


def _write(blocks: Iterator[bytes], target: Path) -> Copied:
    digest, size = sha256(), 0
    with target.open("wb") as file:
        for block in blocks:
            digest.update(block)
            size += file.write(block)
    return Copied(size, digest.hexdigest())


# Plans --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """The manifest of a run: the files of each shard, and the folder or bucket that contains them."""

    source: str
    shards: Sequence[Sequence[PlannedFile]]

    @property
    def files(self) -> int:
        return sum(len(shard) for shard in self.shards)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for shard in self.shards for file in shard)


async def make_plan(out: Bucket, source: str, settings: Settings) -> Plan:
    """List the files and write the manifest. If a manifest of the same source already exists, it is reused."""
    if known := await find_plan(out):
        if known.source != source:
            raise BadInput(f"These results belong to {known.source}. Choose another folder for the results.")
        return known
    with suppress(AlreadyStored):  # another process wrote it in the meantime
        await out.put(MANIFEST, _manifest(list_plan(source, settings)))
    return await read_plan(out)


def list_plan(source: str, settings: Settings) -> Plan:
    """List the files without writing a manifest."""
    return Plan(source, list(_cut(open_source(source, settings).list())))


def _cut(files: Iterable[PlannedFile]) -> Iterator[list[PlannedFile]]:
    shard, size = list[PlannedFile](), 0
    for file in files:
        if shard and (len(shard) >= SHARD_FILES or size + file.bytes > SHARD_BYTES):
            yield shard
            shard, size = [], 0
        shard.append(file)
        size += file.bytes
    if shard:
        yield shard


async def find_plan(out: Bucket) -> Plan | None:
    return await read_plan(out) if await out.stat(MANIFEST) else None


async def read_plan(out: Bucket) -> Plan:
    """Read the manifest. Raises `NotPlanned` if there is none."""
    parquet = extra_module("pyarrow.parquet")
    if await out.stat(MANIFEST) is None:
        raise NotPlanned
    file: Any = parquet.ParquetFile(io.BytesIO(await out.read(MANIFEST, limit=READ_BYTES)))
    source: bytes = file.schema_arrow.metadata[SOURCE_NAME]
    groups = (file.read_row_group(number).to_pylist() for number in range(file.num_row_groups))
    return Plan(source.decode(), [[PlannedFile(**row) for row in group] for group in groups if group])


def _manifest(plan: Plan) -> bytes:
    pa = extra_module("pyarrow")
    schema = pa.schema({"key": pa.string(), "bytes": pa.int64(), "etag": pa.string()})
    schema = schema.with_metadata({SOURCE_NAME: plan.source})
    return write_parquet(schema, (pa.Table.from_pylist(list(map(asdict, shard)), schema) for shard in plan.shards))


def write_parquet(schema: Any, groups: Iterable[Any]) -> bytes:  # noqa: ANN401 - a schema and tables of Arrow
    """Return a Parquet file with one row group for each table."""
    written = io.BytesIO()
    with extra_module("pyarrow.parquet").ParquetWriter(written, schema, compression="zstd") as writer:
        for table in groups:
            writer.write_table(table)
    return written.getvalue()


# Shards -------------------------------------------------------------------------------------------------------------


def shard_key(number: int) -> str:
    return f"{SHARDS}/{number:06}.parquet"


def source_key(digest: str) -> str:
    return f"{SOURCES}/{digest[:2]}/{digest}"


async def finished_shards(out: Bucket) -> set[int]:
    return {int(info.key.rsplit("/", 1)[-1].split(".")[0]) async for info in out.list(SHARDS)}


async def read_shard(out: Bucket, number: int, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Read the results of a shard, one dictionary for each file."""
    parquet = extra_module("pyarrow.parquet")
    content = io.BytesIO(await out.read(shard_key(number), limit=READ_BYTES))
    rows: list[dict[str, Any]] = parquet.read_table(content, columns=list(columns) if columns else None).to_pylist()
    return rows


@asynccontextmanager
async def open_results(named: str, settings: Settings) -> AsyncGenerator[Bucket]:
    """Open the folder or bucket with the results of a run for the duration of a `with` block."""
    bucket = open_place(as_url(named), settings)
    try:
        yield bucket
    finally:
        await bucket.aclose()
