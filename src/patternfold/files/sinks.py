"""Results that are written block by block: ``.npy``, zarr, CSV and Parquet.

Whatever was written stays readable when the rest fails, and all but Parquet can be gone on with.
"""

from __future__ import annotations

import csv
import errno
import io
import os
import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

Columns = dict[str, np.ndarray]


class Sink(ABC):
    """A file that takes the rows of one block after the other."""

    takes_images = False
    """Whether rows may have more than one number for a name."""

    def __init__(self, path: Path, total: int, block: int):
        self.path, self.total, self.block, self.rows = path, total, block, 0

    @abstractmethod
    def write(self, columns: Columns) -> None:
        """Append rows."""

    def go_on(self) -> None:
        """Keep what whole blocks of an earlier run have left, and go on behind it."""
        raise ValueError(f"{self.path} can't be gone on with: name an .npy, .zarr or .csv file.")

    def close(self) -> None:
        """Finish the file."""
        return

    def append(self, columns: Columns) -> None:
        """Append rows; a full disk is told with what was kept."""
        try:
            self.write(columns)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise OSError(
                error.errno,
                f"{error.strerror}: {self.path} holds the results of the first {self.rows} of "
                f"{self.total} images. Make room, and go on with resume",
            ) from error
        self.rows += len(next(iter(columns.values())))


class NpySink(Sink):
    """An ``.npy`` file whose header always says how many rows there are."""

    takes_images = True

    def write(self, columns: Columns) -> None:
        """Append rows, then count them in the header."""
        if len(columns) != 1:
            raise ValueError(
                f"{self.path} holds one array, and there are {len(columns)}: {', '.join(columns)}. "
                "Write to a .zarr, .csv or .parquet file."
            )
        (rows,) = columns.values()
        rows = np.ascontiguousarray(rows.astype(str) if rows.dtype.kind == "O" else rows)
        with open(self.path, "r+b" if self.rows else "wb") as file:
            head = _header((self.rows, *rows.shape[1:]), rows.dtype)
            each = rows.nbytes // max(1, len(rows))
            if not self.rows:
                file.write(head)
            file.seek(len(head) + self.rows * each)
            file.write(rows.tobytes())
            file.flush()
            file.seek(0)
            file.write(_header((self.rows + len(rows), *rows.shape[1:]), rows.dtype))

    def go_on(self) -> None:
        """Count the rows."""
        self.rows = len(npy.open_memmap(self.path, mode="r")) // self.block * self.block


def _header(shape: tuple[int, ...], dtype: np.dtype) -> bytes:
    """A header of the same length for any number of rows."""
    file = io.BytesIO()
    what = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(file, what)
    return file.getvalue()


class ZarrSink(Sink):
    """A zarr array, or a group of them where there are several; blocks are chunks."""

    takes_images = True
    WRITTEN = "rows_written"

    def __init__(self, path: Path, total: int, block: int):
        super().__init__(path, total, block)
        self._group: Any = None

    def write(self, columns: Columns) -> None:
        """Write a chunk of each array, and count it when all are there."""
        import zarr

        if self._group is None:
            if self.rows == 0 and self.path.exists():
                shutil.rmtree(self.path)
            self._group = zarr.open_group(self.path, mode="a")
        for name, rows in columns.items():
            rows = rows.astype(str) if rows.dtype.kind == "O" else rows
            if name not in self._group:
                shape, chunks = (self.total, *rows.shape[1:]), (self.block, *rows.shape[1:])
                self._group.create_array(
                    name,
                    shape=shape,
                    chunks=chunks,
                    dtype=rows.dtype,
                    config={"write_empty_chunks": True},
                )
            self._group[name][self.rows : self.rows + len(rows)] = rows
        count = len(next(iter(columns.values())))
        self._group.attrs[self.WRITTEN] = self.rows + count

    def go_on(self) -> None:
        """Ask the group."""
        import zarr

        written = zarr.open_group(self.path, mode="r").attrs.get(self.WRITTEN, 0)
        self.rows = int(str(written)) // self.block * self.block


class CsvSink(Sink):
    """A CSV table."""

    def write(self, columns: Columns) -> None:
        """Append lines."""
        text = io.StringIO(newline="")
        writer = csv.writer(text)
        if not self.rows:
            writer.writerow(columns)
        parts = [rows.tolist() for rows in columns.values()]
        writer.writerows(zip(*parts, strict=True))
        with open(self.path, "a" if self.rows else "w", newline="", encoding="utf-8") as file:
            file.write(text.getvalue())

    def go_on(self) -> None:
        """Keep the lines of whole blocks."""
        ends = [0]
        with open(self.path, "rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    ends.append(ends[-1] + len(line))
        self.rows = max(0, len(ends) - 2) // self.block * self.block
        if self.rows:
            os.truncate(self.path, ends[self.rows + 1])


class ParquetSink(Sink):
    """A Parquet file, one row group for each block."""

    def __init__(self, path: Path, total: int, block: int):
        super().__init__(path, total, block)
        self._writer: Any = None

    def write(self, columns: Columns) -> None:
        """Append a row group."""
        pyarrow, parquet = _pyarrow()
        table = pyarrow.table(
            {
                name: rows.tolist() if rows.dtype.kind == "O" else rows
                for name, rows in columns.items()
            }
        )
        if self._writer is None:
            self._writer = parquet.ParquetWriter(self.path, table.schema)
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the index, without which the file can't be read."""
        if self._writer is not None:
            self._writer.close()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install 'patternfold[cluster]'.") from error
    return pyarrow, pyarrow.parquet


SINKS: dict[str, type[Sink]] = {
    ".npy": NpySink,
    ".zarr": ZarrSink,
    ".csv": CsvSink,
    ".parquet": ParquetSink,
}
"""By the end of the file's name."""


def open_sink(path: str | Path, total: int, block: int, resume: bool = False) -> Sink:
    """Return what writes such a file, behind what an earlier run has left where asked to."""
    path = Path(path)
    kind = SINKS.get(path.suffix.lower())
    if kind is None:
        raise ValueError(f"{path} must end in {', '.join(SINKS)}.")
    sink = kind(path, total, block)
    if resume and path.exists():
        sink.go_on()
    return sink
