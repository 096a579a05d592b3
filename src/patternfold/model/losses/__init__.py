"""Losses ρ of residuals, by name or as objects."""

from __future__ import annotations

from typing import Any

from patternfold._validation import lookup
from patternfold.model.losses.base import AbstractLoss
from patternfold.model.losses.huber import Huber
from patternfold.model.losses.squared import Squared
from patternfold.model.losses.student_t import StudentT

LOSSES: dict[str, type[AbstractLoss]] = {
    "squared": Squared,
    "huber": Huber,
    "student-t": StudentT,
}
"""Losses by name: files, pages and the command line know those that stand here."""

SQUARES = Squared()
"""The default."""

__all__ = ["LOSSES", "SQUARES", "AbstractLoss", "Huber", "Squared", "StudentT", "as_loss"]


def as_loss(loss: str | AbstractLoss) -> AbstractLoss:
    """Return a loss from its name, or the object itself."""
    if isinstance(loss, AbstractLoss):
        return loss
    if not isinstance(loss, str):
        raise TypeError(f"loss={loss!r} must be a name ({', '.join(LOSSES)}) or a loss object.")
    kind: Any = lookup("loss", loss, LOSSES)
    return kind()
