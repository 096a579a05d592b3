"""Small things that several tests need; fitting takes long, so most build their models by hand."""

from contextlib import contextmanager

import numpy as np
from sklearn.svm import SVC

from patternfold import JPATS, PATS, AlignedViews, AlignedViewsClassifier, Pattern, datasets
from patternfold.learning import many, observations
from patternfold.learning.effort import EFFORTS, LEARNING
from patternfold.learning.lighting import PLAIN
from patternfold.learning.stream import stack as stacks
from patternfold.model.mothers import as_mother
from patternfold.model.transformations import as_transformation

SHAPE = (16, 16)
ATOMS = [[0.4, 0.2, 0.1, 0.4, 0.15], [-0.8, -0.2, -0.25, 0.15, 0.3], [0.0, 0.1, -0.1, 0.2, 0.2]]
COEF = [1.0, -0.6, 0.8]


def small_pattern(mother="gaussian"):
    return Pattern(COEF, ATOMS, mother)


def small_model(transformation="similarity", mother="gaussian", n_images=6, shape=SHAPE, **options):
    """Return a `PATS` as if fitted, and the images it explains but for a little noise."""
    rng = np.random.default_rng(0)
    pattern = small_pattern(as_mother(mother))
    images, lam = datasets.random_images(
        pattern, n_images, rng, transformation, shape=shape, noise=1e-4
    )
    model = PATS(3, transformation=transformation, mother=mother, **options)
    model.pattern_ = pattern
    model.transformation_ = as_transformation(transformation).with_bounds(options.get("bounds", {}))
    model.parameters_ = lam
    model.gain_, model.offset_ = np.ones(n_images), np.zeros(n_images)
    model.error_path_ = np.array([0.5, 0.1, 0.01])
    model.n_iter_ = 3
    model.stop_reason_ = "all atoms chosen"
    model.image_shape_ = shape
    model.n_features_in_ = shape[0] * shape[1]
    model._stacked = True
    return model, images


def class_images(n=6, shape=SHAPE):
    """Images of a bar and of a dot, turned and shifted at random, with their labels."""
    rng = np.random.default_rng(0)
    images = [
        datasets.random_images(pattern, n, rng, "similarity", shape=shape, noise=1e-4)[0]
        for pattern in class_patterns()
    ]
    return np.concatenate(images), np.repeat(["bar", "dot"], n)


def class_patterns():
    return [
        Pattern([1.0, 0.5], [[0.0, 0.0, 0.0, 0.5, 0.1], [0.0, 0.3, 0.0, 0.1, 0.1]]),
        Pattern([1.0, -0.4], [[0.0, 0.0, 0.0, 0.25, 0.25], [0.0, 0.0, 0.0, 0.1, 0.1]]),
    ]


def small_jpats(**options):
    """Return a `JPATS` as if fitted, with its images and labels."""
    images, labels = class_images()
    model = JPATS(2, transformation="similarity", **options)
    fitted = {
        "patterns_": class_patterns(),
        "classes_": np.array(["bar", "dot"]),
        "transformation_": as_transformation("similarity"),
        "cross_parameters_": np.tile([0.0, 0.0, 0.0, 1.0], (len(images), 2, 1)),
        "error_path_": np.array([[0.3, 0.2], [0.0, 0.1]]),
        "n_iter_": 1,
        "stop_reason_": "all atoms chosen",
        "outlier_threshold_": np.inf,
        "outlier_label_": "outlier",
        "image_shape_": SHAPE,
        "n_features_in_": SHAPE[0] * SHAPE[1],
        "_stacked": True,
    }
    vars(model).update(fitted)
    return model, images, labels


def small_views_classifier(features="gradients"):
    """Return an `AlignedViewsClassifier` with given patterns and a fitted machine."""
    jpats, images, labels = small_jpats()
    names = ("classes_", "image_shape_", "n_features_in_", "_stacked", "stop_reason_")
    shared = {name: getattr(jpats, name) for name in names}
    views = AlignedViews(features=features, image_shape=SHAPE)
    own = {"patterns_": jpats.patterns_, "transformation_": jpats.transformation_}
    fitted = {"lighting_": PLAIN, "distance_unit_": 0.5 if features == "gradients" else None}
    vars(views).update(shared | own | fitted)
    model = AlignedViewsClassifier(2, transformation="similarity", features=features)
    machine = SVC(C=10).fit(views.transform(images), labels)
    vars(model).update(shared | {"views_": views, "classifier_": machine})
    return model, images, labels


STACK_OPTIONS = {
    "transformation": "translation",
    "random_state": 0,
    "n_starts": 1,
    "n_exchanges": 0,
}
"""Of models that are learned from stacks: the least that shows what there is to see."""


def shifted_images(count, noise, n_atoms=3, seed=0):
    """Images of a pattern that differ by their shift, and by noise."""
    rng = np.random.default_rng(seed)
    truth = datasets.random_pattern(n_atoms, rng)
    return datasets.random_images(truth, count, rng, "translation", shape=SHAPE, noise=noise)[0]


def as_bytes(images):
    """Images in 8 bits, about 120."""
    return np.clip(images / np.abs(images).max() * 100 + 120, 0, 255).astype(np.uint8)


@contextmanager
def small_stacks(block=32, pixels=256, least_effort=True):
    """Stacks in blocks of so many images, 64 of which are learned from first, with least effort.

    Chunks are as large as blocks, so that stacks and arrays share compiled code.
    """
    chunk_bytes = dict(observations.CHUNK_BYTES)
    observations.CHUNK_BYTES["cpu"] = block * pixels * 4
    before = stacks.BLOCK_BYTES["cpu"], many.SETTLED_ON, dict(EFFORTS)
    stacks.BLOCK_BYTES["cpu"], many.SETTLED_ON = block * pixels * 4, many.GROWN_ON
    if least_effort:
        EFFORTS.update(dict.fromkeys(EFFORTS, LEARNING))
    yield
    observations.CHUNK_BYTES.update(chunk_bytes)
    stacks.BLOCK_BYTES["cpu"], many.SETTLED_ON = before[:2]
    EFFORTS.update(before[2])
