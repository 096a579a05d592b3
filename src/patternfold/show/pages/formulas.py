"""Formulas of a model for the browser: written by its components, never read from a file."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from patternfold.learning.fitted import FittedManifolds
from patternfold.model.mothers import AbstractMother

INVISIBLE = 4e-11
"""Share of φ's greatest value that no picture shows, however large a coefficient may be."""

FUNCTIONS = ("transformation", "dictionary", "mother")
MAYBE = ("spread", "widening")


def formulas_of(view: FittedManifolds) -> dict[str, Any] | None:
    """Return the JavaScript of all components, or None if the browser can't draw the model.

    ``transformation``, ``dictionary`` and ``mother`` are functions; ``affine`` and ``radial`` tell
    what they allow to be computed faster, ``far`` the z beyond which φ can't be seen. Families that
    widen atoms have the functions ``spread`` and ``widening``, others None.
    """
    first = view.patterns[0]
    mother, dictionary = first.mother, first.dictionary
    if any((p.mother, p.dictionary) != (mother, dictionary) for p in view.patterns):
        return None
    found = [component.formula() for component in (view.transformation, dictionary, mother)]
    spread = view.transformation.spread_formula()
    widening = None if spread is None else dictionary.widening_formula()
    if any(text is None for text in found) or (spread is not None and widening is None):
        return None
    return {
        **dict(zip(FUNCTIONS, found, strict=True)),
        "spread": spread,
        "widening": widening,
        "affine": view.transformation.is_affine and dictionary.is_affine,
        "radial": mother.is_radial,
        "far": _far(mother) if mother.is_radial else None,
    }


def as_script(formulas: dict[str, Any] | None) -> str:
    """Return a JavaScript expression: the functions themselves, so that nothing is evaluated."""
    if formulas is None:
        return "null"
    functions = {name: formulas[name] for name in (*FUNCTIONS, *MAYBE)}
    for name, text in functions.items():
        if text is not None and ("</" in text or "<!--" in text):
            raise ValueError(f"the formula of the {name} can't stand inside a script element")
    lines = [f"  {name}: {text or 'null'}," for name, text in functions.items()]
    far = "Infinity" if formulas["far"] is None else repr(formulas["far"])
    lines += [f"  {name}: {str(formulas[name]).lower()}," for name in ("affine", "radial")]
    return "\n".join(["{", *lines, f"  far: {far},", "}"])


def _far(mother: AbstractMother) -> float | None:
    """Return the least z = x² + y² from which on φ is invisible, or None if it decays slowly."""
    z = np.concatenate([[0.0], np.geomspace(1e-3, 1e6, 1000)])
    with jax.enable_x64(True):
        values = np.abs(mother(jnp.asarray(np.sqrt(z)), jnp.zeros(len(z))))
    seen = np.flatnonzero(values > INVISIBLE * values.max())
    last = int(seen.max()) + 1
    return float(z[last]) if last < len(z) and z[last] < 1e3 else None
