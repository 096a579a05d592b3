"""What stacks in files have in common: opened once in each process, when first needed."""

from __future__ import annotations

import threading
from abc import abstractmethod
from pathlib import Path
from typing import Any

import numpy as np

from patternfold.learning.stream.stack import Stack, StackError

_opening = threading.RLock()


class FileStack(Stack):
    """A stack behind something that slices like an array, and stays in its process."""

    path: Path
    name: str

    def __init__(self, path: str | Path, name: str | None = None):
        self.path = Path(path)
        self.name = str(path) if name is None else name
        found = self.opened
        self.shape, self.dtype = _checked(self.name, found)
        self.together = together(found)

    @abstractmethod
    def open(self) -> Any:
        """Open the file and return what slices like an array (N, H, W)."""

    @property
    def opened(self) -> Any:
        """What slices like an array."""
        with _opening:
            if "_opened" not in vars(self):
                try:
                    self._opened = self.open()
                except (StackError, ImportError):
                    raise
                except Exception as error:
                    reason = (str(error) or type(error).__name__).rstrip(".")
                    raise StackError(
                        f"{self.name} can't be opened: {reason}. Restore the file from a copy, or "
                        "write it again."
                    ) from error
            return self._opened

    def read(self, begin: int, end: int) -> np.ndarray:
        """Read a slice."""
        return np.asarray(self.opened[begin:end])

    def __getstate__(self) -> dict[str, Any]:
        """Leave what is open behind: another process, maybe in another folder, opens it itself."""
        own = {name: value for name, value in vars(self).items() if name != "_opened"}
        return own | {"path": self.path.absolute()}


def _checked(name: str, array: Any) -> tuple[tuple[int, int, int], np.dtype]:
    shape, dtype = tuple(int(n) for n in array.shape), np.dtype(array.dtype)
    if len(shape) != 3 or 0 in shape:
        raise StackError(
            f"{name} has shape {shape}; expected (N, H, W), grey images of one size. Colour is "
            "turned grey, and rows of pixels are reshaped, before they are stored."
        )
    if dtype.kind not in "biuf":
        raise StackError(f"{name} holds {dtype}, which are no real numbers.")
    return (shape[0], shape[1], shape[2]), dtype


def together(array: Any) -> int:
    """Images that an array stores together."""
    stored = getattr(array, "shards", None) or getattr(array, "chunks", None)
    first = stored[0] if stored else 1
    return int(max(first) if isinstance(first, tuple) else first)


class SliceableStack(FileStack):
    """Anything with a shape, a dtype and slices, such as an array of another library.

    Parameters
    ----------
    array : object
        Of shape (N, H, W).
    name : str, optional
        What people call it.
    """

    def __init__(self, array: Any, name: str | None = None):
        self._array = array
        super().__init__(".", name or f"an array of {type(array).__module__.split('.')[0]}")

    def open(self) -> Any:
        """Return the array itself."""
        return self._array
