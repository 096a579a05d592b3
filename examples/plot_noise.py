"""
See through the noise
=====================

Each image alone shows next to nothing. Forty-eight of them, in unknown poses, tell the pattern.
"""

# %%
# A pattern of four atoms, turned and shifted at random, under noise of three times its energy
# (a signal-to-noise ratio of −5 dB).

import matplotlib.pyplot as plt
import numpy as np

from patternfold import PATS, datasets
from patternfold.plotting import PatternDisplay

rng = np.random.default_rng(4)
truth = datasets.random_pattern(4, rng)
bounds = {"tx": (-0.2, 0.2), "ty": (-0.2, 0.2)}
clean, poses = datasets.random_images(
    truth, 48, rng, "rotation-translation", bounds, shape=(24, 24)
)
variance = 3 * clean.var()
images = clean + np.sqrt(variance) * rng.normal(size=clean.shape).astype(clean.dtype)

# %%
# Nothing but the noisy images is given.

model = PATS(
    n_atoms=4, transformation="rotation-translation", bounds=bounds, n_starts=2, random_state=0
).fit(images)

# %%
# Above, some images as given; below, the pattern as each of them was found to show it.

found = model.inverse_transform(model.parameters_).reshape(images.shape)
fig, axes = plt.subplots(3, 6, figsize=(8, 4.2), layout="constrained")
for line, some, name in zip(axes, (images, found, clean), ("given", "found", "truth"), strict=True):
    for ax, image in zip(line, some, strict=False):
        ax.imshow(image, cmap="gray")
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)

# %%
# How well the images behind the noise are known, as a share of their energy: by the noisy images
# themselves, and by the pattern.

energy = (clean**2).sum()
print(f"noisy images: {((images - clean) ** 2).sum() / energy:.2f}")
print(f"pattern:      {((found - clean) ** 2).sum() / energy:.3f}")
PatternDisplay.from_estimator(model, atoms=True)
