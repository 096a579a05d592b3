"""What an experiment is, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from patternfold.experiments.context import Context

Values = dict[str, Any]


class Done(NamedTuple):
    """A step's values and the seconds it took."""

    values: Values
    seconds: float


@dataclass(frozen=True)
class Claim:
    """A statement of the paper beside what was measured.

    Attributes
    ----------
    statement : str
        What the paper says.
    measured : str
        What was found, with its numbers.
    holds : bool
        Whether what was found agrees.
    ours : str
        How our default does in the same respect, and by how much it is ahead.
    reason : str
        Why the statement does not hold, where known, or what differs from the paper.
    """

    statement: str
    measured: str
    holds: bool
    ours: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Picture:
    """A matplotlib figure with its caption."""

    figure: Any
    caption: str


@dataclass(frozen=True)
class Outcome:
    """What an experiment found.

    Attributes
    ----------
    metrics : sequence of dict
        Rows of ``metrics.csv``.
    pictures : mapping of str to Picture
        By name of the PNG file, without its ending.
    claims : sequence of Claim
        Statements of the paper that the experiment checks.
    notes : sequence of str
        What differs from the paper: data, sizes, reductions.
    stand_in : str
        What stands in for images that were not there.
    """

    metrics: Sequence[Values]
    pictures: Mapping[str, Picture]
    claims: Sequence[Claim]
    notes: Sequence[str] = field(default_factory=tuple)
    stand_in: str = ""


@dataclass(frozen=True)
class Experiment:
    """A configuration for the full run and one for a quick look, and the run itself.

    ``run`` gets its configuration, seed and data folder from the `Context`, does everything that
    takes time in the context's steps, and returns an `Outcome`.
    """

    full: Any
    quick: Any
    run: Callable[[Context], Outcome]
