"""Mother functions: `patternfold.model.mothers` by its public name."""

from patternfold.model.mothers import (
    MOTHERS,
    AbstractMother,
    AbstractRadialMother,
    CustomMother,
    Gaussian,
    InverseMultiquadric,
    as_mother,
)

__all__ = [
    "MOTHERS",
    "AbstractMother",
    "AbstractRadialMother",
    "CustomMother",
    "Gaussian",
    "InverseMultiquadric",
    "as_mother",
]
