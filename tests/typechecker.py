"""The type checker that tests switch on for the package: whole numbers pass as floats.

jaxtyping has two functions checked for each of the package's: one with its parameters, and one with
its parameters and its result, of which the result alone is looked at here. A local function is made
anew in each call of the one around it; what was made to check it serves again.
"""

from collections.abc import Callable
from typing import Any

from beartype import BeartypeConf, beartype

_checked: Callable[[Any], Any] = beartype(conf=BeartypeConf(is_pep484_tower=True))

RESULT = "ret0"
"""Parameter under which jaxtyping hands over the result."""

_local: dict[Any, Callable[..., Any]] = {}


def typechecker(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check parameters or result of a function that jaxtyping has made in the shape of ours."""
    if RESULT in function.__annotations__:
        result = function.__annotations__.items()
        function.__annotations__ = {name: hint for name, hint in result if name == "return"}
    if "<locals>" not in function.__qualname__:
        return _checked(function)
    code, hints = function.__code__, tuple(function.__annotations__.items())
    shape = code.co_varnames, code.co_argcount, code.co_posonlyargcount, code.co_flags
    defaults = function.__defaults__, tuple((function.__kwdefaults__ or {}).items())
    key = (function.__module__, function.__qualname__, *shape, hints, *defaults)
    try:
        known = _local.get(key)
    except TypeError:  # a default that has no hash
        return _checked(function)
    return known or _local.setdefault(key, _checked(function))
