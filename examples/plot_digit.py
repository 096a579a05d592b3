"""
Learn a digit that comes at any angle
=====================================

Images of a handwritten five, each turned, shifted and stretched in its own way, become one pattern.
"""

# %%
# Sixteen fives from MNIST, transformed at random over the full circle.

import numpy as np

from patternfold import PATS
from patternfold.datasets import load_mnist, transform_images
from patternfold.plotting import AlignmentDisplay, ErrorPathDisplay, PatternDisplay

digits, labels = load_mnist()
rng = np.random.default_rng(1)
fives = rng.permutation(digits[labels == 5])[:16]
images, truth = transform_images(fives, rng, "similarity", canvas=(32, 32))

# %%
# No reference and no rough alignment are given. Each atom lowers the error for all images at once.

model = PATS(n_atoms=8, transformation="similarity", random_state=0).fit(images)
ErrorPathDisplay.from_estimator(model)

# %%
# The pattern is a sum of smooth atoms: it can be drawn as finely as one likes. Orange atoms add,
# blue ones subtract.

PatternDisplay.from_estimator(model, atoms=True)

# %%
# Every image has been found on the pattern's manifold, so all can be brought into its frame. The
# mean becomes sharp and the spread dark.

# sphinx_gallery_thumbnail_number = 3
AlignmentDisplay.from_estimator(model, images)

# %%
# The parameters are those of the transformation: an angle, two shifts and a scale per image.

for name, values in zip(model.get_feature_names_out(), model.parameters_.T, strict=True):
    print(f"{name:>5}: from {values.min():6.2f} to {values.max():6.2f}")
