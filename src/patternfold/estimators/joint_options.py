"""Options of `JPATS`: checked, and turned into what its learning loop takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from patternfold._validation import lookup, unknown_name
from patternfold.estimators.options import (
    AUTO,
    REFERENCES,
    check_counts,
    check_learning,
    is_auto,
    make_settings,
)
from patternfold.learning.acceptance import ACCEPTANCES
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.choose import MOST_CHOSEN
from patternfold.learning.choose_patterns import chosen_count
from patternfold.learning.joint import JointProblem
from patternfold.learning.joint_settings import JointSettings
from patternfold.learning.schedules import (
    MODERATE_ALPHA,
    RELATIVE_ALPHA,
    AlphaSchedule,
    BetaSchedule,
    ConstantAlpha,
    ConstantBeta,
    SigmoidAlpha,
    fit_beta,
)
from patternfold.learning.validation import SHARES, Trial, best_of, cross_validated
from patternfold.model.pattern import MOST_ATOMS

PEAK_SHARE = 1.0
"""Share of the brightest pixel that an atom may reach which is selected jointly."""

ALPHAS = ("auto", "cv")
"""What α may be by name."""

MOST_PATTERNS = 1000
"""Most patterns of a class: every image is compared with each of them."""


def check_joint(estimator: Any) -> None:
    """Refuse options that mean nothing."""
    if estimator.reference not in REFERENCES:
        raise unknown_name("reference", estimator.reference, REFERENCES)
    least = {"n_base_updates": 1, "patience": 1, "n_tuning": 0}
    check_counts(estimator, least | ({} if estimator.n_joint is None else {"n_joint": 0}))
    _check_weight("alpha", estimator.alpha, ALPHAS)
    _check_weight("beta", estimator.beta)
    bound = estimator.max_coef
    if bound != "auto" and (isinstance(bound, str) or not bound > 0):
        raise ValueError(f"max_coef={bound!r} must be a number above 0 or 'auto'.")
    lookup("acceptance", estimator.acceptance, ACCEPTANCES)
    check_patterns(estimator.n_patterns)
    threshold = estimator.outlier_threshold
    if isinstance(threshold, str) and threshold != "calibrate":
        raise ValueError(f"outlier_threshold={threshold!r} must be a number or 'calibrate'.")
    check_learning(estimator)


def _check_weight(name: str, value: Any, names: tuple[str, ...] = ()) -> None:
    if value is None or callable(value) or (isinstance(value, str) and value in names):
        return
    if isinstance(value, str) or not value >= 0:
        others = "".join(f" or {known!r}" for known in names)
        raise ValueError(f"{name}={value!r} must be a number that is not negative{others}.")


def check_patterns(n_patterns: Any) -> None:
    """Refuse numbers of patterns for a class that are neither integers nor "auto"."""
    by_class = n_patterns if isinstance(n_patterns, Mapping) else {None: n_patterns}
    for label, value in by_class.items():
        number = isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_))
        if not is_auto(value) and not (number and 1 <= value <= MOST_PATTERNS):
            of_class = "" if label is None else f" of class {label!s}"
            raise ValueError(
                f"n_patterns={value!r}{of_class} must be an integer from 1 to {MOST_PATTERNS}, or "
                f"{AUTO!r}."
            )


def pattern_counts(estimator: Any, problem: JointProblem, seed: int) -> tuple[int, ...]:
    """Patterns of every class; chosen on its images where that is asked for."""
    asked, classes = estimator.n_patterns, estimator.classes_
    if not isinstance(asked, Mapping):
        asked = {c: asked for c in classes}
    missing = [c for c in classes if c not in asked]
    if missing:
        raise ValueError(f"n_patterns={dict(asked)} names no number for {missing}.")
    counts = []
    for m, c in enumerate(classes):
        own = np.flatnonzero(problem.labels == m)
        if is_auto(asked[c]):
            counts.append(chosen_count(problem.all.part(own), seed))
            continue
        if asked[c] > len(own):
            raise ValueError(
                f"n_patterns={asked[c]} but class {c!s} has only {len(own)} images that differ. "
                f"Ask for fewer patterns, or for {AUTO!r}."
            )
        counts.append(int(asked[c]))
    return tuple(counts)


def joint_settings(estimator: Any, seed: int) -> JointSettings:
    """How the patterns are learned, as far as that does not depend on the images."""
    counts = _counts(estimator)
    n_joint, auto = estimator.n_joint, is_auto(estimator.n_atoms)
    if n_joint is None:
        n_joint = 1 if min(counts) > 1 else 0
    settings = JointSettings(
        alone=make_settings(estimator, AUTO if auto else 1, tol=0.0, seed=seed),
        n_atoms=counts,
        n_joint=int(n_joint),
        n_base_updates=int(estimator.n_base_updates),
        significance=estimator.significance,
        acceptance=ACCEPTANCES[estimator.acceptance],
        patience=int(estimator.patience),
        n_tuning=int(estimator.n_tuning),
        alpha=_alpha(estimator.alpha),
        beta=_beta(estimator.beta),
    )
    # Without classification term there is nothing to do jointly.
    return replace(settings, n_joint=0, n_tuning=0) if _is_zero(estimator.alpha) else settings


def for_images(
    settings: JointSettings, estimator: Any, problem: JointProblem, amplitude: Amplitude
) -> tuple[JointSettings, list[Trial]]:
    """Add what depends on the images: numbers of patterns, the bound C, the unit of α and β.

    The second result are the trials of a cross-validation, if there was one.
    """
    free = isinstance(estimator.max_coef, str)
    bound = PEAK_SHARE * problem.all.peak_coef
    if not free:
        bound = float(amplitude.lowered(np.array([estimator.max_coef], np.float64))[0])
    counts = pattern_counts(estimator, problem, settings.alone.seed)
    settings, trials = replace(settings, max_coef=bound, n_patterns=counts), []
    if isinstance(estimator.alpha, str) and estimator.alpha == "cv":
        shares = SHARES if free else ()  # a bound that is given is not chosen
        trials = cross_validated(problem, settings, estimator.reference, shares)
        best = best_of(trials)
        settings = replace(settings, alpha=best.alpha, max_coef=best.share * settings.max_coef)
    return settings.in_units_of(problem), trials


def _counts(estimator: Any) -> tuple[int, ...]:
    """K_m of every class; the most that it may be where it is chosen."""
    n_atoms, classes = estimator.n_atoms, estimator.classes_
    if is_auto(n_atoms):
        n_atoms = MOST_CHOSEN + (1 if estimator.n_joint is None else estimator.n_joint)
    if not isinstance(n_atoms, Mapping):
        n_atoms = {c: n_atoms for c in classes}
    missing = [c for c in classes if c not in n_atoms]
    if missing:
        raise ValueError(f"n_atoms={dict(n_atoms)} names no number for {missing}.")
    for m in classes:
        count = n_atoms[m]
        if not isinstance(count, (int, np.integer)) or not 1 <= count <= MOST_ATOMS:
            raise ValueError(
                f"n_atoms={count!r} of class {m!s} must be an integer from 1 to {MOST_ATOMS}; or "
                f"n_atoms={AUTO!r}, for all classes."
            )
    return tuple(int(n_atoms[c]) for c in classes)


def _is_zero(alpha: Any) -> bool:
    return alpha is not None and not callable(alpha) and alpha == 0


def _alpha(alpha: Any) -> AlphaSchedule:
    if alpha is None:
        return MODERATE_ALPHA
    if isinstance(alpha, str):
        return RELATIVE_ALPHA
    if isinstance(alpha, SigmoidAlpha):
        return alpha
    function: Any = alpha
    return (lambda j, scale: function(j)) if callable(alpha) else ConstantAlpha(float(alpha))


def _beta(beta: Any) -> BetaSchedule | ConstantBeta:
    if beta is None or isinstance(beta, BetaSchedule):
        return beta or BetaSchedule(fit_beta)
    rule: Any = beta
    return BetaSchedule(rule) if callable(beta) else ConstantBeta(float(beta))
