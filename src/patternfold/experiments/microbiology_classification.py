"""Plankton of six species, classified by all methods: Fig. 10 of the paper."""

from __future__ import annotations

from patternfold import datasets
from patternfold.experiments.base import Experiment, Outcome
from patternfold.experiments.class_comparison import Configuration, outcome
from patternfold.experiments.classification import PUBLISHED
from patternfold.experiments.context import Context

OPTIONS = {"transformation": "similarity"}
NOTES = (
    "The paper's videos of protists are not public as images; plankton of the National Data "
    "Science Bowl stands in for them: six species, single specimens, so that shapes differ more "
    "than between frames of three videos.",
    PUBLISHED,
    "Three repetitions instead of five.",
    "There are no untransformed images: SMP and SAS learn from training images that patterns of "
    "ours, one per class, have registered; LDA and the network from training and test images "
    "registered to one pattern of all classes.",
)


def run(context: Context) -> Outcome:
    """Compare all methods."""
    settings: Configuration = context.configuration
    splits = [
        datasets.split_plankton(
            settings.n_train,
            context.seed + repeat,
            settings.n_test,
            n_species=len(settings.classes),
            factor=64 // settings.canvas[0],
            data=context.data,
        )
        for repeat in range(settings.n_repeats)
    ]
    return outcome(context, splits, OPTIONS, "microorganisms", NOTES)


EXPERIMENT = Experiment(
    full=Configuration(
        70,
        35,
        classes=tuple(range(6)),
        counts_ours=(12,),
        canvas=(32, 32),
    ),
    quick=Configuration(
        12,
        10,
        classes=(0, 1),
        n_repeats=1,
        counts=(1, 2, 4),
        counts_ours=(4,),
        n_repeats_printed=0,
        canvas=(32, 32),
    ),
    run=run,
)
