"""The dictionary manifold: atoms φ_γ(x, y) = φ(b(γ, x, y)), by name or as objects."""

from __future__ import annotations

from typing import Any

from patternfold._validation import lookup
from patternfold.model.dictionaries.atom import AtomDictionary
from patternfold.model.dictionaries.base import AbstractDictionary
from patternfold.model.dictionaries.custom import CustomDictionary

DICTIONARIES: dict[str, type[AbstractDictionary]] = {
    "atoms": AtomDictionary,
}
"""Dictionaries by name: files, pages and the command line know those that stand here."""

__all__ = [
    "DICTIONARIES",
    "AbstractDictionary",
    "AtomDictionary",
    "CustomDictionary",
    "as_dictionary",
]


def as_dictionary(dictionary: str | AbstractDictionary | None) -> AbstractDictionary:
    """Return a dictionary from its name, the object itself, or the paper's own for ``None``."""
    if dictionary is None:
        return AtomDictionary()
    if isinstance(dictionary, AbstractDictionary):
        return dictionary
    if not isinstance(dictionary, str):
        raise TypeError(
            f"dictionary={dictionary!r} must be a name, a dictionary object or None; wrap a "
            "function of (gamma, x, y) in CustomDictionary."
        )
    kind: Any = lookup("dictionary", dictionary, DICTIONARIES)
    return kind()
