"""What transformations, mother functions and dictionaries have in common: options, and a formula.

A component tells others what is special about it, so that files, pages and the command line need to
know no component by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, TypeVar

import equinox as eqx
import numpy as np

from patternfold.model.box import Box
from patternfold.model.units import ANGLE, Bound, plain_bounds

Boxed = TypeVar("Boxed", bound="Family")

NOT_OPTIONS = ("parameters", "translation")
"""Fields that belong to what a component is; the box is described on its own."""

Plain = str | int | float | bool | None


class Component(eqx.Module):
    """A part of the model that can be described by a name, options and, maybe, a formula."""

    def options(self) -> dict[str, Any]:
        """Return what the constructor needs to make this component again, as plain values."""
        return {name: _plain(self, name) for name in option_names(type(self))}

    def formula(self) -> str | None:
        """Return a JavaScript function for the browser, or None if there is none.

        With it pages draw the pattern themselves; without it they show frames drawn beforehand.
        """
        return None


class Family(Component):
    """A component with parameters in a box."""

    parameters: eqx.AbstractVar[Box]
    """The domain of the parameters."""

    limits: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """Least and greatest values that bounds may have, for parameters beyond which nothing sensible
    is left: scales down to 0, shifts of many windows."""

    measures: ClassVar[Mapping[str, str]] = {}
    """Parameters that are an angle, in radians, or a length, in half sides of the image: their
    bounds may be given in degrees and pixels."""

    @property
    def measured(self) -> Mapping[str, str]:
        """The `measures` of all parameters, also where the family is made of others."""
        return self.measures

    def prior_kinds(self) -> tuple[str, ...]:
        """Return the kind of density that suits each parameter.

        "von-mises" for what is periodic or an angle, "log" for what must be above 0, else
        "gaussian". See `patternfold.model.prior`.
        """
        box = self.parameters
        return tuple(
            "von-mises"
            if box.periodic[k] or self.measured.get(name) == ANGLE
            else "log"
            if self.limits.get(name, (0.0,))[0] > 0
            else "gaussian"
            for k, name in enumerate(box.names)
        )

    def default_prior(self) -> Mapping[str, tuple[float, float]] | None:
        """Return (mean, std) of parameters that need a prior wherever none is given, or None.

        For families whose parameters would otherwise take up whatever the pattern leaves.
        """
        return None

    def __check_init__(self) -> None:
        """Refuse bounds beyond the limits."""
        self.check_limits(self.parameters)

    def check_limits(self, box: Box) -> None:
        """Refuse a box that goes beyond the limits; the error names a sensible one."""
        for name, (least, most) in self.limits.items():
            k = box.index(name)
            if not least <= box.lower[k] < box.upper[k] <= most:
                usual: Any = next(f.default for f in fields(self) if f.name == "parameters")
                raise ValueError(
                    f"bounds of {name!r} are ({box.lower[k]:g}, {box.upper[k]:g}); they must stay "
                    f"between {least:g} and {most:g}: narrow them, for example to "
                    f"bounds={{{name!r}: ({usual.lower[k]:.4g}, {usual.upper[k]:.4g})}}."
                )

    def with_bounds(
        self: Boxed, bounds: Mapping[str, tuple[Bound, Bound]], pixel: float | None = None
    ) -> Boxed:
        """Return the same family on a smaller or larger box.

        Bounds may have units, ``("-30deg", "30deg")``; those in pixels need the width of a
        ``pixel`` in half sides of the image.
        """
        if not bounds:
            return self
        plain = plain_bounds(bounds, self.measured, pixel)
        return self.on(self.parameters.with_bounds(plain))

    def on(self: Boxed, box: Box) -> Boxed:
        """Return the same family on another box of the same parameters."""
        if box.names != self.parameters.names:
            raise ValueError(
                f"{type(self).__name__} has the parameters {self.parameters.names}, "
                f"not {box.names}."
            )
        self.check_limits(box)
        return eqx.tree_at(
            lambda family: family.parameters,
            self,
            box,
            is_leaf=lambda node: isinstance(node, Box),
        )


def option_names(kind: type[Component]) -> tuple[str, ...]:
    """Names of the options of a component's constructor: its fields but for the box."""
    return tuple(f.name for f in fields(kind) if f.name not in NOT_OPTIONS)


def _plain(component: Component, name: str) -> Any:
    """Return an option as JSON can hold it; sequences are tuples."""
    value = getattr(component, name)
    value = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    if isinstance(value, (tuple, list)) and all(isinstance(v, Plain) for v in value):
        return tuple(value)
    if not isinstance(value, Plain):
        raise TypeError(
            f"{type(component).__name__}.{name} is no plain value; override options() to say how "
            "the component is made again."
        )
    return value
