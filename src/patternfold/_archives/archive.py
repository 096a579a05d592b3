"""A zip of a few named members: written at once, read within limits that are checked first."""

from __future__ import annotations

import os
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import ZipExtFile

from patternfold._writing import replacing

LARGEST = 2**30
"""Bytes that all members of an archive may unpack to."""

SMALL = 2**24
"""Bytes that they may unpack to however short the file is; beyond, `LARGEST_SHARE` counts."""

LARGEST_SHARE = 8
"""Times the length of the file that all members may unpack to: ours are not packed at all, those of
version 0.1 to a half or a quarter."""

MOST_MEMBERS = 4096
_LARGEST_DIRECTORY = 2**20
_LARGEST_RATIO = 200  # of one member: masks and zeros shrink well, bombs a thousandfold
_READABLE = 0o644  # permissions of members, for who unpacks them by hand
_END = struct.Struct("<4s4H2LH")
_NAME = re.compile(r"\w+(/\w+)*\.(json|npy|npz)", re.ASCII)


def write_archive(path: Path, members: Mapping[str, bytes]) -> None:
    """Write members, atomically: a file of that name is replaced only when all is well."""
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            # Without the time of writing: the same model gives the same file.
            info = zipfile.ZipInfo(name)
            info.external_attr = _READABLE << 16
            archive.writestr(info, content)


class Archive:
    """Members of an open zip, by name."""

    def __init__(self, archive: zipfile.ZipFile, length: int):
        self._archive = archive
        self.length = length
        """Bytes of the file."""
        self._members = {info.filename: info for info in archive.infolist()}

    @property
    def names(self) -> list[str]:
        """Names of the members."""
        return list(self._members)

    def size(self, name: str) -> int:
        """Bytes that a member unpacks to."""
        return self._info(name).file_size

    @contextmanager
    def open(self, name: str) -> Iterator[ZipExtFile]:
        """Open a member for reading."""
        with self._archive.open(self._info(name)) as file:
            assert isinstance(file, ZipExtFile)
            yield file

    def read(self, name: str, largest: int = LARGEST) -> bytes:
        """Read a member of at most ``largest`` bytes."""
        if self.size(name) > largest:
            raise ValueError(f"{name} would unpack to {self.size(name)} bytes")
        with self.open(name) as file:
            return file.read()

    def _info(self, name: str) -> zipfile.ZipInfo:
        if name not in self._members:
            raise ValueError(f"it has no {name}")
        return self._members[name]


@contextmanager
def open_archive(file: Any, outer: int | None = None, largest: int = LARGEST) -> Iterator[Archive]:
    """Open a zip whose directory and declared sizes are within limits.

    ``outer`` is the length of the file that holds it, where it is a member itself: what unpacks to
    something that unpacks again would otherwise grow twice. All members together may unpack to
    ``largest`` bytes.
    """
    length = _check_directory(file)
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        outer = length if outer is None else outer
        _check_members(members, length, min(max(SMALL, LARGEST_SHARE * outer), largest))
        yield Archive(archive, length)


def _check_directory(file: Any) -> int:
    """Refuse a long list of members before it is read; return the length of the file."""
    length = file.seek(0, os.SEEK_END)
    file.seek(max(0, length - _END.size - 2**16))
    tail = file.read()
    start = tail.rfind(b"PK\x05\x06")
    if start < 0 or len(tail) - start < _END.size:
        raise zipfile.BadZipFile("it is not a zip file, or its end is missing")
    _, _, _, _, count, size, _, _ = _END.unpack_from(tail, start)
    large = tail[max(0, start - 20) : start].startswith(b"PK\x06\x07")
    if large or count > MOST_MEMBERS or size > _LARGEST_DIRECTORY:
        raise ValueError(f"it has more than {MOST_MEMBERS} members")
    return length


def _check_members(members: list[zipfile.ZipInfo], length: int, most: int) -> None:
    """Refuse names, sizes and packing that a model file never has."""
    if len({info.filename for info in members}) < len(members):
        raise ValueError("two members have the same name")
    for info in members:
        name = info.filename[:80]
        if not _NAME.fullmatch(info.filename):
            raise ValueError(f"it has a member of an unexpected name, {name!r}")
        if info.flag_bits & 1 or info.compress_type not in (
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
        ):
            raise ValueError(f"{name} is encrypted or packed in an unexpected way")
        if info.file_size > _LARGEST_RATIO * (info.compress_size + 1024):
            raise ValueError(f"{name} would unpack to {info.file_size} bytes")
    # Room is made for as many bytes as a member says it has, before any is read.
    if sum(info.compress_size for info in members) > length:
        raise ValueError("its members say that they are longer than the file")
    total = sum(info.file_size for info in members)
    if total > most:
        raise ValueError(f"it would unpack to {total} bytes, more than {most}")
