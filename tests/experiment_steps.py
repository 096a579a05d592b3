"""A tiny experiment that counts its steps."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from patternfold.experiments import Claim, Outcome, Picture
from patternfold.experiments.context import Context


@dataclass(frozen=True)
class Settings:
    n: int = 3


calls = []


def count_up(key, n):
    calls.append(key)
    return {"values": np.arange(n), "key": key}


def steps_of(n, keys="abc"):
    return {key: partial(count_up, key, n) for key in keys}


def a_context(folder, **options):
    calls.clear()
    return Context("complexity", Settings(), folder, quick=True, **options)


def make_outcome(context):
    found = context.parallel(steps_of(context.configuration.n))
    figure = Figure()
    figure.subplots().plot(found["a"]["values"])
    claims = [
        Claim("It grows.", "by 1", True, ours="the same"),
        Claim("It | falls.", "it does not", False, reason="It grows."),
    ]
    rows = [{"n": n, "value": float(v)} for n, v in enumerate(found["a"]["values"])]
    return Outcome(rows, {"curve": Picture(figure, "A curve")}, claims, ["Smaller."])
