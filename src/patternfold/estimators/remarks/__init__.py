"""Remarks: what is worth a second look after learning, in sentences with a code and a remedy."""

from __future__ import annotations

from typing import Any

import numpy as np

from patternfold.estimators.remarks.evidence import Evidence
from patternfold.estimators.remarks.images import remarks_on_images
from patternfold.estimators.remarks.kinds import remarks_on_kinds
from patternfold.estimators.remarks.learned import remarks_on_learning, remarks_on_poses
from patternfold.estimators.remarks.remark import CODES, Remark

__all__ = ["CODES", "Evidence", "Remark", "remarks_on", "remarks_on_kinds", "remarks_on_new"]


def remarks_on(model: Any, evidence: Evidence | None = None) -> list[Remark]:
    """Return remarks on a fitted `PATS`, and on images if there are any."""
    if evidence is None:
        poses = remarks_on_poses(model.transformation_, model.parameters_)
        return [*remarks_on_learning(model), *poses]
    return [*remarks_on_learning(model), *remarks_on_new(evidence)]


def remarks_on_new(evidence: Evidence) -> list[Remark]:
    """Return remarks on images and their poses alone, for images that were not learned from."""
    family = evidence.model.transformation_
    # Blank images have a pose that says nothing.
    lam = np.where(evidence.blank[:, None], np.nan, evidence.found.parameters)
    return [*remarks_on_images(evidence), *remarks_on_poses(family, lam)]
