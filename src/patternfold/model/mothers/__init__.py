"""Mother functions φ, by name or as objects."""

from __future__ import annotations

from typing import Any

from patternfold._validation import lookup
from patternfold.model.mothers.base import AbstractMother, AbstractRadialMother
from patternfold.model.mothers.custom import CustomMother
from patternfold.model.mothers.gaussian import Gaussian
from patternfold.model.mothers.inverse_multiquadric import InverseMultiquadric

MOTHERS: dict[str, type[AbstractMother]] = {
    "gaussian": Gaussian,
    "inverse-multiquadric": InverseMultiquadric,
}
"""Mother functions by name: files, pages and the command line know those that stand here."""

__all__ = [
    "MOTHERS",
    "AbstractMother",
    "AbstractRadialMother",
    "CustomMother",
    "Gaussian",
    "InverseMultiquadric",
    "as_mother",
]


def as_mother(mother: str | AbstractMother) -> AbstractMother:
    """Return a mother function from its name, or the object itself."""
    if isinstance(mother, AbstractMother):
        return mother
    if not isinstance(mother, str):
        raise TypeError(
            f"mother={mother!r} must be a name or a mother function; "
            "wrap a function of (x, y) in CustomMother."
        )
    kind: Any = lookup("mother", mother, MOTHERS)
    return kind()
