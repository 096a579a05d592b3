"""Files and folders that appear at once: whole, or not at all and the old ones as they were."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows, which doesn't let anyone delete a file that is open
    fcntl = None

LONGEST_NAME = 255
"""Bytes of a file's name on all usual systems."""

_TAG = 4
_LONGEST_BASE = LONGEST_NAME - 2 * _TAG - len("..")


@contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Give a file to write to, which takes the place of ``path`` when the block ends well.

    Leftovers of writers that were killed are removed. What is no ordinary file, such as
    ``/dev/stdout``, is written to as it is.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file() and not target.is_dir():
        with open(target, "wb") as file:
            yield file
        return
    remove_leftovers(target)
    temporary, file = _open_temporary(target)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file at once."""
    with replacing(path) as file:
        file.write(content)


def write_text(path: str | Path, text: str) -> None:
    """Write a text in UTF-8 at once; what UTF-8 can't hold is written as an escape sequence."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


@contextmanager
def replacing_folder(path: str | Path) -> Iterator[Path]:
    """Give a folder to write to, whose files are moved to ``path`` when the block ends well.

    Files of the same names are replaced there, others stay.
    """
    target = Path(os.path.realpath(path))
    remove_leftovers(target)
    temporary = _temporary(target)
    temporary.mkdir()
    lock = _lock(temporary)
    try:
        yield temporary
        if target.is_dir():
            for file in sorted(p for p in temporary.rglob("*") if p.is_file()):
                place = target / file.relative_to(temporary)
                place.parent.mkdir(parents=True, exist_ok=True)
                os.replace(file, place)
        else:
            os.replace(temporary, target)
    finally:
        if lock is not None:
            os.close(lock)
        shutil.rmtree(temporary, ignore_errors=True)


def remove_leftovers(target: Path) -> None:
    """Remove what writers of this file or folder have left who were killed."""
    mine = re.compile(re.escape(f".{_base(target)}.") + rf"[0-9a-f]{{{2 * _TAG}}}")
    with suppress(OSError):
        for entry in list(os.scandir(target.parent)):
            if mine.fullmatch(entry.name):
                _remove_unless_locked(Path(entry.path))


def _base(target: Path) -> str:
    """The file's name, cut so that the temporary one isn't too long for the system."""
    return os.fsdecode(os.fsencode(target.name)[:_LONGEST_BASE])


def _temporary(target: Path) -> Path:
    return target.with_name(f".{_base(target)}.{secrets.token_hex(_TAG)}")


def _open_temporary(target: Path) -> tuple[Path, BinaryIO]:
    """Open a new file and lock it: who finds it unlocked knows that its writer is gone."""
    while True:
        temporary = _temporary(target)
        file = open(temporary, "xb")
        if fcntl is None:
            return temporary, file
        with suppress(OSError):  # some network drives know no locks
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file.fileno()).st_nlink:  # nobody took it for a leftover before it was locked
            return temporary, file
        file.close()


def _lock(path: Path) -> int | None:
    """Lock a file or folder and return what keeps it locked; None if it can't be locked."""
    if fcntl is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _remove_unless_locked(path: Path) -> None:
    lock = _lock(path)
    if lock is None:
        return
    try:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    finally:
        os.close(lock)
