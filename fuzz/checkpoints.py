"""Damaged checkpoints: a step as it was written, none, or a CheckpointError, in little room.

Damage that checksums reveal ends the checkpoint where it is; damage with correct sums is refused,
or gives arrays that can be a step.
"""

from __future__ import annotations

import io
import struct
import sys
import tempfile
import zlib
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]

import numpy as np  # noqa: E402
from damage import damaged  # noqa: E402
from harness import MOST_MEMORY, Finding, Made, run  # noqa: E402
from zips import hurt_zip  # noqa: E402

from patternfold.learning.codecs import PatternsCodec, StateCodec  # noqa: E402
from patternfold.learning.journal import MAGIC, CheckpointError, Journal  # noqa: E402
from patternfold.learning.state import State  # noqa: E402
from patternfold.model.pattern import Pattern  # noqa: E402

ABOUT = {"version": "1", "kind": "PATS", "X": "0" * 32, "n_atoms": "3"}
_SIZES = struct.Struct("<QI")
GAMMA = [[0.3, 0.1, -0.1, 0.5, 0.2], [0.0, 0.0, 0.1, 0.2, 0.2]]
STATE = State(Pattern([1.0, -0.5], GAMMA), np.zeros((5, 4)), 0.25)
SUMS = ".sums"
"""Ending of files whose checksums are correct."""


def _codecs() -> tuple[StateCodec, PatternsCodec]:
    return StateCodec(Pattern(), np.random.default_rng(0)), PatternsCodec(Pattern())


def _seed() -> list[bytes]:
    """Return the head and the records of a checkpoint, without their sizes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "checkpoint")
        journal, (state, patterns) = Journal(path, ABOUT), _codecs()
        journal.put("atom", state.pack(STATE))
        journal.put("classes", patterns.pack((STATE.pattern, STATE.pattern)))
        journal.close()
        content = io.BytesIO(path.read_bytes()[len(MAGIC) :])
    parts = []
    while sizes := content.read(_SIZES.size):
        parts.append(content.read(_SIZES.unpack(sizes)[0]))
    return parts


PARTS = _seed()


def _joined(parts: list[bytes]) -> bytes:
    return MAGIC + b"".join(_SIZES.pack(len(p), zlib.crc32(p)) + p for p in parts)


def make(rng: np.random.Generator) -> Made:
    """Damage the file, or a record with its sum."""
    if rng.random() < 0.3:
        return Made(damaged(_joined(PARTS), rng), ".bytes", "bytes")
    parts, k = list(PARTS), int(rng.integers(len(PARTS)))
    if k == 0:
        parts[0], mode = damaged(parts[0], rng), "head"
    else:
        parts[k], mode = hurt_zip(parts[k], "name.npy", rng, texts=False)
    return Made(_joined(parts), SUMS, mode)


def check(path: Path) -> str:
    """Go through the steps as a run does."""
    try:
        journal = Journal(path, ABOUT)
    except CheckpointError:
        return "refused"
    try:
        read = [_step(journal, *step) for step in zip(("atom", "classes"), _codecs(), strict=True)]
    except CheckpointError:
        return "refused"
    finally:
        journal.close()
    if path.suffix != SUMS and read[0] is not None and not _same(read[0]):
        raise Finding("another state than was written")
    return "read" if None not in read else "ended early"


def _step(journal: Journal, name: str, codec: StateCodec | PatternsCodec) -> object:
    record = journal.take(name)
    if record is None:
        return None
    with journal.refusing():
        return codec.unpack(record)


def _same(state: object) -> bool:
    assert isinstance(state, State)
    return state.error == STATE.error and np.array_equal(state.pattern.coef, STATE.pattern.coef)


if __name__ == "__main__":
    sys.exit(run(make, check, __doc__, MOST_MEMORY))
