"""Checkpoints: the results of long steps in a file, in the order in which they were reached.

A run that is begun again takes the steps that are in the file from there and goes on behind them.
Everything else is computed as before, so that it ends where a run without a break ends. Records are
appended with their length and a checksum: what a killed program has left half-written does not
count.
"""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar, runtime_checkable

import numpy as np

from patternfold._archives.archive import open_archive
from patternfold._archives.arrays import read_arrays
from patternfold._writing import write_bytes
from patternfold.numerics.interrupts import was_interrupted

T = TypeVar("T")
Record = dict[str, np.ndarray]

MAGIC = b"patternfold checkpoint 1\n"
_SIZES = struct.Struct("<QI")  # bytes of a record, and their checksum


class CheckpointError(ValueError):
    """A checkpoint of another run, or none at all; the message says what differs."""


@runtime_checkable
class Codec(Protocol[T]):
    """Turns a result into arrays and back."""

    def pack(self, value: T) -> Record:
        """Return the arrays."""
        ...

    def unpack(self, record: Record) -> T:
        """Return the result."""
        ...


class Journal:
    """The records of a run: those of an earlier one first, then new ones."""

    def __init__(self, path: str | Path, about: dict[str, Any]):
        self.path = Path(path)
        text = json.dumps(about, sort_keys=True).encode()
        head = MAGIC + _SIZES.pack(len(text), zlib.crc32(text)) + text
        if not self.path.exists() or not self.path.stat().st_size:
            write_bytes(self.path, head)
        self._file: BinaryIO = open(self.path, "r+b")
        try:
            self._require_same(about)
        except CheckpointError:
            self._file.close()
            raise
        self.replayed = 0
        """Records that were taken from the file."""
        self.ended = False
        """Whether somebody asked to stop: what follows is no step of a whole run."""

    def _require_same(self, about: dict[str, Any]) -> None:
        if self._file.read(len(MAGIC)) != MAGIC or (text := self._next()) is None:
            raise CheckpointError(f"{self.path} is no checkpoint; name another file.")
        with self.refusing():
            known, own = json.loads(text), json.loads(json.dumps(about))
            if not isinstance(known, dict):
                raise ValueError("it does not say what it is of")
        differing = sorted(name for name in known | own if known.get(name) != own.get(name))
        if differing:
            name = differing[0]
            raise CheckpointError(
                f"{self.path} belongs to another run: {name} was {known.get(name)!r} and is "
                f"{own.get(name)!r}. Use the same data and options, or name another file."
            )

    def _next(self) -> bytes | None:
        """The next whole record; None where there is no further one."""
        begin = self._file.tell()
        sizes = self._file.read(_SIZES.size)
        if len(sizes) == _SIZES.size:
            length, checksum = _SIZES.unpack(sizes)
            left = os.fstat(self._file.fileno()).st_size - self._file.tell()
            content = self._file.read(length) if length <= left else b""
            if len(content) == length and zlib.crc32(content) == checksum:
                return content
        self._file.seek(begin)
        return None

    def take(self, name: str) -> Record | None:
        """The next record, which must have this name; None where there is none."""
        content = self._next()
        if content is None:
            return None
        with self.refusing():
            record = _arrays(content)
            if str(record.pop("name")) != name:
                raise ValueError(f"a step {name} was expected")
        self.replayed += 1
        return record

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Tell of records that this version can't have written."""
        try:
            yield
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
            raise self._strange(error) from error
        except (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError) as error:
            raise self._strange(error) from error
        except NotImplementedError as error:  # zips that say they are of a later version
            raise self._strange(error) from error

    def _strange(self, error: Exception) -> CheckpointError:
        return CheckpointError(
            f"{self.path} does not go with this version, or was changed ({error}); "
            "name another file."
        )

    def put(self, name: str, record: Record) -> None:
        """Append a record in place of whatever is left of a broken one."""
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, name=np.array(name), **record)
        data = content.getvalue()
        try:
            self._write(_SIZES.pack(len(data), zlib.crc32(data)) + data)
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror}: {self.path} holds the steps up to here. Make room, and run the "
                "same again: it goes on from there",
            ) from error

    def _write(self, data: bytes) -> None:
        self._file.truncate()
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; what a full disk has not taken is known to be missing."""
        with suppress(OSError):
            self._file.close()


def _arrays(content: bytes) -> Record:
    """Read a record's arrays, which are as long as they are in the file: nothing is packed."""
    with open_archive(io.BytesIO(content), largest=len(content)) as archive:
        return read_arrays(archive, prefix="")


_current: ContextVar[Journal | None] = ContextVar("journal", default=None)


@contextmanager
def journalled(path: str | Path | None, about: Callable[[], dict[str, Any]]) -> Iterator[None]:
    """Keep a journal within the block, unless there is no path or one is kept already."""
    if path is None or _current.get() is not None:
        yield
        return
    journal = Journal(path, about())
    token = _current.set(journal)
    try:
        yield
    finally:
        _current.reset(token)
        journal.close()


def recorded(name: str, codec: Codec[T], compute: Callable[..., T], *args: Any) -> T:
    """The result of a step: from the journal, if it has it, or computed and written there."""
    journal = current_journal()
    if journal is None:
        return compute(*args)
    record = journal.take(name)
    if record is not None:
        with journal.refusing():
            return codec.unpack(record)
    value = compute(*args)
    if not was_interrupted():
        journal.put(name, codec.pack(value))
    return value


def current_journal() -> Journal | None:
    """The journal that is kept, if one is and nobody has asked to stop."""
    journal = _current.get()
    return None if journal is None or journal.ended or was_interrupted() else journal


def end_journal() -> None:
    """Write no further steps: a run that stops early does other things than a whole one."""
    journal = _current.get()
    if journal is not None:
        journal.ended = True
