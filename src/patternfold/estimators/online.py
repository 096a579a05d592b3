"""`PATS.partial_fit`: learning from batches that are seen once."""

from __future__ import annotations

from typing import Any

import numpy as np

from patternfold.estimators.fitting import fitting
from patternfold.estimators.images import as_weights, pixels_of
from patternfold.estimators.options import family_of, lighting_of
from patternfold.files.stacks import Stack, as_stack
from patternfold.learning.amplitude import Amplitude
from patternfold.learning.refit.eliminate import Reduced
from patternfold.learning.stream.online import Moved, move, remembered
from patternfold.learning.stream.sweep import Model
from patternfold.model.grid import Grid
from patternfold.model.losses import as_loss
from patternfold.numerics.precision import precision


class PartialFitMixin:
    """Gives `PATS` its ``partial_fit``."""

    memory_: tuple[np.ndarray, ...]
    n_seen_: int
    pattern_: Any
    transformation_: Any
    image_shape_: tuple[int, int]
    parameters_: np.ndarray
    error_path_: np.ndarray
    fit: Any
    loss: Any
    prior: Any

    def partial_fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, sample_mask: Any = None
    ) -> Any:
        """Go on learning from a batch of images, each seen once.

        The first batch, of some hundred images if that can be, is learned from as by ``fit``; later
        ones move its atoms. Of what earlier batches told, more is forgotten the more two halves of
        a batch agree that the pattern should move. ``parameters_``, ``gain_`` and ``offset_`` are
        those of the last batch, and ``error_path_`` grows by its error.

        Parameters
        ----------
        X : array of shape (N, H, W) or (N, H·W), Stack or path
            Images; a stack is taken block by block.
        y : ignored
        sample_weight, sample_mask
            As in ``fit``.
        """
        if as_loss(self.loss).reweights or self.prior is not None:
            raise ValueError(
                f"partial_fit knows loss='squared' without prior; got loss={self.loss!r} and "
                f"prior={self.prior!r}. Use fit, which takes stacks larger than memory."
            )
        stack = as_stack(X)
        if stack is not None:
            return self._fit_blocks(stack, sample_weight, sample_mask)
        if not hasattr(self, "pattern_"):
            return self._fit_first(X, sample_weight, sample_mask)
        with fitting(self):
            rows, counted = pixels_of(self, X, sample_mask, reset=False)
            weights = as_weights(sample_weight, len(rows))
            if counted is not None:
                rows = np.where(counted, rows, np.nan)
            self._move(rows, weights)
        return self

    def _fit_blocks(self, stack: Stack, sample_weight: Any, sample_mask: Any) -> Any:
        weights = as_weights(sample_weight, len(stack))
        for begin, end in stack.spans():
            mask = sample_mask
            if mask is not None and np.ndim(mask) == 3:
                mask = np.asarray(mask[begin:end])
            self.partial_fit(stack.images(begin, end), None, weights[begin:end], mask)
        return self

    def _fit_first(self, X: Any, sample_weight: Any, sample_mask: Any) -> Any:
        self.fit(X, None, sample_weight, sample_mask)
        with fitting(self):
            rows, counted = pixels_of(self, X, sample_mask, reset=False)
            if counted is not None:
                rows = np.where(counted, rows, np.nan)
            weights, model = as_weights(sample_weight, len(rows)), self._model()
            pattern = model.amplitude.lowered_pattern(self.pattern_)
            with precision(rows.dtype):
                self.memory_ = remembered(model, pattern, rows, weights, self.parameters_)
            self.n_seen_ = len(rows)
        return self

    def _model(self) -> Model:
        return Model(
            Grid(*self.image_shape_),
            self.transformation_,
            family_of(self),
            lighting_of(self),
            Amplitude.of_patterns([self.pattern_]),
        )

    def _move(self, rows: np.ndarray, weights: np.ndarray) -> None:
        model, known = self._model(), getattr(self, "memory_", None)
        memory = None if known is None else Reduced(*known)
        pattern = model.amplitude.lowered_pattern(self.pattern_)
        with precision(rows.dtype):
            moved = move(model, pattern, memory, rows, weights)
        self._remember(moved, model.amplitude)

    def _remember(self, moved: Moved, amplitude: Amplitude) -> None:
        self.pattern_, self.memory_ = amplitude.raised_pattern(moved.pattern), moved.memory
        self.parameters_, self.gain_ = moved.seen.lam, moved.seen.gain
        self.offset_ = amplitude.raised(moved.seen.offset)
        energy = max(float(moved.seen.energy[0]), 1e-300)
        self.error_path_ = np.append(self.error_path_, moved.error / energy)
        self.n_iter_ = len(self.error_path_)
        self.n_seen_ = getattr(self, "n_seen_", 0) + len(moved.seen.lam)
