"""The paper's experiments: run, kept in a folder of results, and put beside its statements."""

from patternfold.experiments.base import Claim, Experiment, Outcome, Picture
from patternfold.experiments.registry import ENTRIES, load_experiment

__all__ = ["ENTRIES", "Claim", "Experiment", "Outcome", "Picture", "load_experiment"]
