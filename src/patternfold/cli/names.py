"""Names of components, for options: as registered, without importing what takes long."""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


def transformations() -> tuple[str, ...]:
    """Names of transformations."""
    return registered("model/transformations/__init__.py", "TRANSFORMATIONS")


class Sums(tuple[str, ...]):
    """Names of which sums, written ``one+other``, are names too."""

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        """Tell whether a name, or all names of a sum, are listed."""
        return isinstance(name, str) and all(
            tuple.__contains__(self, part.strip()) for part in name.split("+")
        )


def mothers() -> tuple[str, ...]:
    """Names of mother functions."""
    return registered("model/mothers/__init__.py", "MOTHERS")


def dictionaries() -> tuple[str, ...]:
    """Names of dictionaries."""
    return registered("model/dictionaries/__init__.py", "DICTIONARIES")


def losses() -> tuple[str, ...]:
    """Names of losses."""
    return registered("model/losses/__init__.py", "LOSSES")


def solvers() -> tuple[str, ...]:
    """Names of solvers."""
    return registered("learning/select/solvers.py", "SOLVERS")


def efforts() -> tuple[str, ...]:
    """Levels of effort."""
    return registered("learning/effort.py", "EFFORTS")


def registered(path: str, registry: str) -> tuple[str, ...]:
    """Return the names in a registry of the package.

    What others register they do in the module itself, which is loaded then. Otherwise the names are
    those of its source, so that ``--help`` needs not wait for JAX.
    """
    module = f"patternfold.{path.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"
    listed = None if module in sys.modules else _listed(PACKAGE / path, registry)
    return tuple(getattr(import_module(module), registry)) if listed is None else listed


def _listed(path: Path, registry: str) -> tuple[str, ...] | None:
    """Keys of the dict that a source file assigns to a name; None if it has no plain one."""
    try:
        statements = ast.parse(path.read_text(encoding="utf-8")).body
    except OSError:
        return None
    for node in statements:
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict):
            if isinstance(node.target, ast.Name) and node.target.id == registry:
                keys = [ast.literal_eval(key) for key in node.value.keys if key is not None]
                return tuple(keys)
    return None
