"""Small things that several tests need; fitting takes long, so most build their models by hand."""

import numpy as np

from patternfold import PATS, Pattern, datasets
from patternfold.mothers import as_mother
from patternfold.transformations import as_transformation

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
    model.error_path_ = np.array([0.5, 0.1, 0.01])
    model.n_iter_ = 3
    model.stop_reason_ = "all atoms chosen"
    model.image_shape_ = shape
    model.n_features_in_ = shape[0] * shape[1]
    model._stacked = True
    return model, images
