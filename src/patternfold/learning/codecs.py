"""States of learning as arrays, for checkpoints."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from patternfold.learning.journal import Record
from patternfold.learning.state import State
from patternfold.model.pattern import Pattern


@dataclass(frozen=True)
class StateCodec:
    """A state as arrays, with the random numbers to come."""

    empty: Pattern
    rng: np.random.Generator | None = None

    def pack(self, value: State) -> Record:
        """Return the arrays."""
        pattern, lam, error = value
        record = {"coef": pattern.coef, "gamma": pattern.gamma, "lam": np.asarray(lam)}
        return record | {"error": np.array(error)} | pack_rng(self.rng)

    def unpack(self, record: Record) -> State:
        """Return the state."""
        unpack_rng(self.rng, record)
        pattern = self.empty.replace(record["coef"], record["gamma"])
        return State(pattern, record["lam"], float(record["error"]))


@dataclass(frozen=True)
class PatternsCodec:
    """Patterns of several classes as arrays, with the random numbers to come."""

    empty: Pattern
    rng: np.random.Generator | None = None

    def pack(self, value: tuple[Pattern, ...]) -> Record:
        """Return the arrays."""
        record = {f"coef_{m}": pattern.coef for m, pattern in enumerate(value)}
        record |= {f"gamma_{m}": pattern.gamma for m, pattern in enumerate(value)}
        return record | {"count": np.array(len(value))} | pack_rng(self.rng)

    def unpack(self, record: Record) -> tuple[Pattern, ...]:
        """Return the patterns."""
        unpack_rng(self.rng, record)
        return tuple(
            self.empty.replace(record[f"coef_{m}"], record[f"gamma_{m}"])
            for m in range(int(record["count"]))
        )


def pack_rng(rng: np.random.Generator | None) -> Record:
    """Return the state of random numbers."""
    return {} if rng is None else {"rng": np.array(json.dumps(rng.bit_generator.state))}


def unpack_rng(rng: np.random.Generator | None, record: Record) -> None:
    """Bring random numbers to a state."""
    if rng is not None:
        rng.bit_generator.state = json.loads(str(record["rng"]))
