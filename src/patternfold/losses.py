"""Losses: `patternfold.model.losses` by its public name."""

from patternfold.model.losses import (
    LOSSES,
    AbstractLoss,
    Huber,
    Squared,
    StudentT,
    as_loss,
)

__all__ = ["LOSSES", "AbstractLoss", "Huber", "Squared", "StudentT", "as_loss"]
