"""Losses against occluded pixels and strangers: poses, patterns, and what they cost.

A pattern is learned from noisy images under random poses, as they are, with a fifth of the pixels
of every image occluded, and with strangers, images of another pattern, for a fifth of all. Pose
errors are medians over the images of the pattern, its frame being free; the pattern's error is that
of new images without noise on its manifold. The oracle knows which pixels are occluded.

    python benchmarks/robust.py               learning, projection and speed
    python benchmarks/robust.py speed --timed 65536     on a GPU, which few images leave idle
    python benchmarks/robust.py learning --first 100    other sets of images

`occlusion_limits.py` tells what errors of the pattern theory allows.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, NamedTuple

import numpy as np
from _timing import add_parts, chosen_parts, compare, machine, print_table, verdict

from patternfold import PATS, Huber, Pattern, Similarity, manifold, project
from patternfold.model.prior import as_prior

FAMILY = Similarity().with_bounds({"s": (0.75, 1.3), "tx": (-0.25, 0.25), "ty": (-0.25, 0.25)})
TRUTH = Pattern(
    [1.0, -0.7, 0.8, 0.6],
    [
        [0.3, 0.2, 0.0, 0.3, 0.15],
        [0.0, -0.3, 0.2, 0.2, 0.2],
        [0.9, -0.1, -0.3, 0.3, 0.1],
        [0.2, 0.35, 0.35, 0.1, 0.15],
    ],
)
STRANGER = Pattern(
    [1.0, 0.9, -0.6],
    [[1.2, -0.2, -0.2, 0.12, 0.4], [0.1, 0.25, 0.1, 0.35, 0.1], [0.0, 0.0, 0.35, 0.2, 0.15]],
)
SHAPE = (28, 28)
N_IMAGES, N_ATOMS, N_SETS = 48, 6, 5
"""Images and atoms of each pattern that is learned, and how often: errors are medians."""

NOISE = 0.3
"""Standard deviation of the noise in units of the images' root mean square: 10 dB."""

OCCLUDED = 0.2
LOSSES = ("squared", "huber", "student-t")
MOST_RISE, MOST_TIME, MOST_PRIOR = 1.2, 1.5, 1.1


class Images(NamedTuple):
    """Images with λ of those that are of the pattern, which come last, and sound pixels."""

    images: np.ndarray
    lam: np.ndarray
    sound: np.ndarray


def rendered(pattern: Pattern, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Images without noise, and λ."""
    lam = FAMILY.parameters.sample(rng, n)
    return manifold.render(pattern, lam, FAMILY, SHAPE).reshape(n, *SHAPE), lam


def make_sets(n: int, seed: int = 0) -> dict[str, Images]:
    """The same images clean, occluded and among strangers."""
    rng = np.random.default_rng(seed)
    pictures, lam = rendered(TRUTH, n, rng)
    sigma = NOISE * np.sqrt((pictures**2).mean())
    clean = pictures + sigma * rng.standard_normal(pictures.shape)
    all_sound = np.ones(clean.shape, bool)
    # Dead and hot pixels: the least and the greatest brightness there is.
    sound = rng.random(clean.shape) >= OCCLUDED
    values = rng.choice([pictures.min(), pictures.max()], clean.shape)
    occluded = np.where(sound, clean, values)
    others = rendered(STRANGER, n // 4, rng)[0]
    others = others + sigma * rng.standard_normal(others.shape)
    mixed = np.concatenate([others, clean])
    sets = {
        "clean": Images(clean, lam, all_sound),
        "20 % occluded": Images(occluded, lam, sound),
        "20 % strangers": Images(mixed, lam, np.ones(mixed.shape, bool)),
    }
    return {k: v._replace(images=v.images.astype(np.float32)) for k, v in sets.items()}


def pose_errors(found: np.ndarray, lam: np.ndarray, free: bool) -> np.ndarray:
    """Norms of the differences of λ; with a free frame, those to the median change of frame."""
    angle = np.angle(np.exp(1j * (found[:, 0] - lam[:, 0])))
    log = np.log(found[:, 3] / lam[:, 3])
    shift = found[:, 1:3] - lam[:, 1:3]
    if free:
        mean = np.angle(np.exp(1j * angle).mean())
        turned = np.angle(np.exp(1j * (angle - mean)))
        angle, log = turned - np.median(turned), log - np.median(log)
        shift = shift - _common_shift(shift, lam)
    return np.linalg.norm(np.column_stack([angle, shift, log]), axis=1)


def _common_shift(shift: np.ndarray, lam: np.ndarray) -> np.ndarray:
    """F_i g for the g that explains most shifts, by the least sum of distances."""
    c, s = lam[:, 3] * np.cos(lam[:, 0]), lam[:, 3] * np.sin(lam[:, 0])
    linear = np.stack([np.stack([c, -s], -1), np.stack([s, c], -1)], 1)
    weights, g = np.ones(len(lam)), np.zeros(2)
    for _ in range(20):
        rows = (linear * weights[:, None, None]).reshape(-1, 2)
        g = np.linalg.lstsq(rows, (shift * weights[:, None]).ravel(), rcond=None)[0]
        weights = 1 / np.sqrt(np.maximum(np.linalg.norm(shift - linear @ g, axis=1), 1e-4))
    return linear @ g


def learned_errors(data: Images, loss: Any, masked: bool = False) -> tuple[float, float]:
    """Median pose error and error of the pattern."""
    model = PATS(N_ATOMS, transformation=FAMILY, loss=loss, random_state=0)
    model.fit(data.images, sample_mask=data.sound if masked else None)
    own = model.parameters_[-len(data.lam) :].astype(np.float64)
    test = rendered(TRUTH, 60, np.random.default_rng(9))[0].astype(np.float32)
    left = project(model.pattern_, test, "similarity").distances
    return float(np.median(pose_errors(own, data.lam, True))), float(
        (left**2).sum() / (test**2).sum()
    )


def projected_errors(data: Images, loss: Any, masked: bool = False) -> tuple[float, ...]:
    """Median pose error with the true pattern."""
    images, sound = data.images[-len(data.lam) :], data.sound[-len(data.lam) :]
    found = project(TRUTH, images, FAMILY, loss=loss, sample_mask=sound if masked else None)
    return (float(np.median(pose_errors(found.parameters, data.lam, False))),)


def table(title: str, sets: list[dict[str, Images]], measure: Any, names: list[str]) -> list[Any]:
    """Measure all losses on all sets; return the claims on Student's t."""
    rows, claims = [], []
    for loss in (*LOSSES, "oracle"):
        first: tuple[float, ...] = ()
        for name in sets[0]:
            if loss == "oracle" and "strangers" in name:
                continue
            how = ("squared", True) if loss == "oracle" else (loss, False)
            found = [measure(some[name], *how) for some in sets]
            errors = tuple(float(v) for v in np.median(found, axis=0))
            first = first or errors
            ratios = [e / f for e, f in zip(errors, first, strict=True)]
            cells = [f"{e:.2e} ({r:.2f})" for e, r in zip(errors, ratios, strict=True)]
            rows.append([loss, name, *cells])
            print("  " + "  ".join(rows[-1]), flush=True)
            if loss == "student-t" and name != "clean":
                claims += [
                    (f"{title}, {name}: {what} {r:.2f} <= {MOST_RISE} times that of clean data", r)
                    for what, r in zip(names, ratios, strict=True)
                ]
    print(f"\n{title}: errors, and how many times those of clean data")
    print_table(["loss", "images", *names], rows)
    return [(text, ratio <= MOST_RISE) for text, ratio in claims]


def speed(n_timed: int) -> list[tuple[str, bool]]:
    """Time of a projection with each loss, with and without a prior, against squares."""
    images = make_sets(n_timed)["clean"].images
    prior = {"theta": (0, 1), "tx": (0, 0.1), "ty": (0, 0.1), "s": (1, 0.1)}
    known = as_prior(prior, FAMILY)
    cases: dict[str, dict[str, Any]] = {loss: {"loss": loss} for loss in LOSSES}
    cases["huber, scale known"] = {"loss": Huber(scale=0.05)}
    cases |= {f"{loss}, prior": {"loss": loss, "prior": prior} for loss in LOSSES}
    cases["squared, prior, noise known"] = {"prior": known and known.with_noise(0.0025)}
    calls = {
        name: (lambda options=options: project(TRUTH, images, FAMILY, **options))
        for name, options in cases.items()
    }
    for call in calls.values():
        call()
    times = compare(calls)
    ratios = {name: seconds / times["squared"] for name, seconds in times.items()}
    print_table(
        ["projection", "images/s", "times squares"],
        [[n, f"{n_timed / times[n]:.0f}", f"{r:.2f}"] for n, r in ratios.items()],
    )
    huber, own = ratios["huber"], ratios["squared, prior, noise known"]
    return [
        (f"Huber takes {huber:.2f} <= {MOST_TIME} times as long", huber <= MOST_TIME),
        (f"a model's prior takes {own:.2f} <= {MOST_PRIOR} times as long", own <= MOST_PRIOR),
    ]


def main() -> int:
    """Run the chosen parts; return 1 if a claim fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parts = ("learning", "projection", "speed")
    add_parts(parser, parts)
    parser.add_argument("--first", type=int, default=0, help="seed of the first set")
    parser.add_argument("--sets", type=int, default=N_SETS, help="sets that are learned")
    parser.add_argument("--timed", type=int, default=1024, help="images to time")
    options = parser.parse_args()
    chosen = chosen_parts(parser, options, parts, list(parts))
    print(machine())
    claims: list[tuple[str, bool]] = []
    if "learning" in chosen:
        seeds = range(options.first, options.first + options.sets)
        sets = [make_sets(N_IMAGES, seed) for seed in seeds]
        claims += table("learning", sets, learned_errors, ["pose", "pattern"])
    if "projection" in chosen:
        sets = {k: v for k, v in make_sets(400).items() if "strangers" not in k}
        claims += table("projection", [sets], projected_errors, ["pose"])
    if "speed" in chosen:
        claims += speed(options.timed)
    for claim, holds in claims:
        print(f"{verdict(holds)}  {claim}")
    return 0 if all(holds for _, holds in claims) else 1


if __name__ == "__main__":
    sys.exit(main())
