"""
Measure poses, with error bars
==============================

With a known pattern, `project` finds how each image is turned, shifted and scaled, and how sure it
is.
"""

# %%
# A pattern, and noisy images of it in known poses.

import matplotlib.pyplot as plt
import numpy as np

from patternfold import datasets, project

rng = np.random.default_rng(4)
pattern = datasets.random_pattern(4, rng)
images, truth = datasets.random_images(
    pattern, 32, rng, "rotation-translation", shape=(24, 24), noise=0.005
)

# %%
# No pose is given to start from. ``uncertainty=True`` asks for error bars.

found = project(pattern, images, "rotation-translation", uncertainty=True)

# %%
# Each error beside its bar of two standard deviations: about 95 in 100 bars reach zero.

error = found.parameters - truth
error[:, 0] = (error[:, 0] + np.pi) % (2 * np.pi) - np.pi
units = (180 / np.pi, 12, 12)  # degrees, and pixels: half a side is 12 of them
names = ("angle, °", "right, pixels", "down, pixels")
fig = plt.figure(figsize=(7.6, 2.6), layout="constrained")
left, right = fig.subfigures(1, 2, width_ratios=[1, 2.2])
for ax, image in zip(left.subplots(3, 3).ravel(), images, strict=False):
    ax.imshow(image, cmap="gray")
    ax.set_axis_off()
for ax, k in zip(right.subplots(1, 3), range(3), strict=True):
    ax.errorbar(
        units[k] * error[:, k], np.arange(32), xerr=2 * units[k] * found.std[:, k], fmt=".", lw=1
    )
    ax.axvline(0, color="grey", lw=1)
    ax.set(yticks=[], xlabel=names[k])
    ax.spines[["top", "right", "left"]].set_visible(False)

# %%
# How many bars hold the truth, by parameter.

print((np.abs(error) <= 1.96 * found.std).mean(axis=0).round(2))
