"""
Sort a pile into kinds
======================

Nobody says what the pictures show, nor how they are turned. `PatternMixture` sorts them into groups
and aligns each. On the command line: ``patternfold cluster FOLDER -o model.ptm --folders sorted``.
"""

# %%
# Handwritten twos, fours and fives at any angle, mixed.

import matplotlib.pyplot as plt
import numpy as np

from patternfold import PatternMixture, align, project
from patternfold.datasets import load_mnist, transform_images

digits, labels = load_mnist()
rng = np.random.default_rng(0)
chosen = np.concatenate(
    [rng.choice(np.flatnonzero(labels == k), 16, replace=False) for k in (2, 4, 5)]
)
rng.shuffle(chosen)
images, _ = transform_images(digits[chosen], rng, "similarity", canvas=(32, 32))

# %%
# Labels are not given; they only judge the result afterwards.

model = PatternMixture(3, transformation="similarity", random_state=0).fit(images)

# %%
# The pile as it came, and each group aligned to its pattern, which is at the end of the row. Nobody
# says which way is up: each group stands in the frame of its pattern.

fig = plt.figure(figsize=(7.6, 2.2), layout="constrained")
left, right = fig.subfigures(1, 2, width_ratios=[1, 1.5])
left.suptitle("as they came")
right.suptitle("three kinds, aligned, and their patterns")
for ax, image in zip(left.subplots(3, 6).ravel(), images, strict=False):
    ax.imshow(image, cmap="gray")
    ax.set_axis_off()
rows = right.subplots(3, 9)
for group, row in enumerate(rows):
    for ax in row:
        ax.set_axis_off()
    own = images[model.labels_ == group]
    found = project(model.patterns_[group], own, "similarity", gain=True)
    aligned = align(own, found.parameters, "similarity")
    for ax, image in zip(row[:-1], aligned, strict=False):
        ax.imshow(image, cmap="gray")
    row[-1].imshow(model.patterns_[group].render((64, 64)), cmap="inferno")

# %%
# True kinds in rows, groups in columns.

for kind in (2, 4, 5):
    print(kind, np.bincount(model.labels_[labels[chosen] == kind], minlength=3))
