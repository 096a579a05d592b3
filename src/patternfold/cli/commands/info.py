"""``patternfold info``: what a model file holds, or what is installed."""

from __future__ import annotations

import argparse
import platform
from pathlib import Path
from typing import Any

from patternfold._text import printable
from patternfold._version import __version__
from patternfold.cli.cache import cache_folder
from patternfold.cli.console import Console
from patternfold.cli.models import read_model


def run(options: argparse.Namespace, console: Console) -> int:
    """Describe."""
    values = _installation() if options.model is None else _model(options.model)
    width = max(len(name) for name in values)
    text = "\n".join(f"{name.replace('_', ' '):<{width}}  {_show(v)}" for name, v in values.items())
    console.result(values, text)
    return 0


def _show(value: Any) -> str:
    return printable(", ".join(map(str, value)) if isinstance(value, list) else str(value))


def _installation() -> dict[str, Any]:
    from importlib.metadata import version

    import jax

    folder = cache_folder()
    return {
        "patternfold": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in ("jax", "numpy", "scipy", "scikit-learn")},
        "devices": [str(device) for device in jax.devices()],
        "cache": None if folder is None else str(folder),
    }


def _say(component: Any) -> str:
    """Name a component's class, with its options where it has some."""
    options = ", ".join(f"{name}={value}" for name, value in component.options().items())
    return type(component).__name__ + (f"({options})" if options else "")


def _priors(view: Any) -> list[str] | None:
    """The prior of each class."""
    if view.priors is None:
        return None
    pairs = zip(view.labels, view.priors, strict=True)
    return [f"{label}: {prior}" if label else str(prior) for label, prior in pairs]


def _model(path: Path) -> dict[str, Any]:
    file = read_model(path)
    from patternfold.learning.fitted import fitted_manifolds

    model, view = file.model, fitted_manifolds(file.model)
    box = view.transformation.parameters
    height, width = view.image_shape
    values: dict[str, Any] = {
        "file": str(path),
        "estimator": type(model).__name__,
        "atoms": sum(pattern.n_atoms for pattern in view.patterns),
        "mother": _say(view.patterns[0].mother),
        "dictionary": _say(view.patterns[0].dictionary),
        "transformation": _say(view.transformation),
        "parameters": [
            f"{name} in [{low:.4g}, {high:.4g}]"
            for name, low, high in zip(box.names, box.lower, box.upper, strict=True)
        ],
        "loss": _say(view.loss),
        "prior": _priors(view),
        "image_size": f"{width}×{height}",
        "examples": 0 if file.examples is None else len(file.examples.names),
        "preparation": file.preparation,
    }
    if hasattr(model, "part_labels_"):
        values["groups"] = [f"{k + 1}: {share:.1%}" for k, share in enumerate(model.proportions_)]
        values["in_no_group"] = f"{model.outlier_share_:.1%}"
        values["parts"] = len(model.parts_)
        values["training_images"] = len(model.labels_)
        values["stop_reason"] = model.stop_reason_
    elif hasattr(model, "pattern_"):
        values["training_images"] = len(model.parameters_)
        values["error"] = float(model.error_path_[-1]) if len(model.error_path_) else None
        values["stop_reason"] = model.stop_reason_
    else:
        values["classes"] = view.class_names
        if len(view.patterns) > len(view.class_names):
            values["patterns"] = list(view.labels)
    return values
