"""The experiments of the paper, in its order. Listing them imports nothing heavy."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

from patternfold.experiments.base import Experiment


class Entry(NamedTuple):
    """What is known of an experiment without importing it."""

    name: str
    title: str
    figure: str


ENTRIES = {
    entry.name: entry
    for entry in (
        Entry("digits-approximation", "One pattern for 30 transformed digits", "Fig. 4"),
        Entry("faces-approximation", "One pattern for 35 transformed faces", "Fig. 5"),
        Entry("occlusion-outliers", "Occluded digits among outliers", "Fig. 6"),
        Entry("illumination", "A face under varied light: gradient descent and starts", "Fig. 7"),
        Entry("noise-approximation", "Approximation error against noise", "Fig. 8"),
        Entry("digits-classification", "Classification of transformed digits", "Fig. 9"),
        Entry("microbiology-classification", "Classification of microorganisms", "Fig. 10"),
        Entry("noise-classification", "Classification of noisy digits", "Fig. 11"),
        Entry("outlier-classification", "Classification among outliers", "Fig. 12"),
        Entry("solvers", "Atoms by the cutting plane and by our search", "Section III"),
        Entry("complexity", "Cost against images, pixels, classes and atoms", "Section V"),
    )
}
"""Experiments by name."""


def load_experiment(name: str) -> Experiment:
    """Import the experiment of a name: the ``EXPERIMENT`` of the module named alike."""
    from patternfold._validation import lookup

    entry = lookup("experiment", name, ENTRIES)
    module = import_module(f"patternfold.experiments.{entry.name.replace('-', '_')}")
    return module.EXPERIMENT
