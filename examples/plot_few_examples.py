"""
Classify from few examples
==========================

Ten examples of each class, at any angle, are too few for a classifier of pixels. Seen in the
frames of the classes' patterns they are enough; all the more as the classifier also learns from
variants of each, slightly deformed.
"""

# %%
# Three digits at any angle: 10 of each to learn from, 20 of each to judge.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from patternfold import AlignedViewsClassifier
from patternfold.datasets import load_mnist, transform_images

digits, labels = load_mnist()
rng = np.random.default_rng(0)
chosen = np.array([rng.choice(np.flatnonzero(labels == k), 30, replace=False) for k in (2, 3, 5)])
train, test = chosen[:, :10].ravel(), chosen[:, 10:].ravel()
bounds = {"s": (0.8, 1.25), "tx": (-0.1, 0.1), "ty": (-0.1, 0.1)}
options = {"transformation": "similarity", "bounds": bounds, "canvas": (32, 32)}
X, _ = transform_images(digits[train], rng, **options)
X_test, _ = transform_images(digits[test], rng, **options)
y, y_test = labels[train], labels[test]

# %%
# The classifier learns a pattern for each class and looks at every image in the frame of each.

views, alone = (
    AlignedViewsClassifier(
        n_atoms=6, n_variants=n, transformation="similarity", bounds=bounds, random_state=0
    ).fit(X, y)
    for n in ("auto", 0)
)
right = {
    "nearest neighbour,\npixels": KNeighborsClassifier(1).fit(X.reshape(len(X), -1), y),
    "support vectors,\npixels": SVC(C=10).fit(X.reshape(len(X), -1), y),
}
scores = {
    name: model.score(X_test.reshape(len(X_test), -1), y_test) for name, model in right.items()
}
scores["aligned views,\nno variants"] = alone.score(X_test, y_test)
scores["aligned views"] = views.score(X_test, y_test)

# %%
# Some test images with the class that was found, and the share of right ones.

fig = plt.figure(figsize=(9, 3), layout="constrained")
left, right = fig.subfigures(1, 2, width_ratios=[1.5, 1])
shown = rng.permutation(len(X_test))[:21]
for ax, i, label in zip(
    left.subplots(3, 7).ravel(), shown, views.predict(X_test[shown]), strict=True
):
    ax.imshow(X_test[i], cmap="gray")
    ax.set_title(label, fontsize=10, color="C2" if label == y_test[i] else "C3", pad=2)
    ax.set_axis_off()
ax = right.subplots()
bars = ax.barh(list(scores), list(scores.values()), color=["grey", "grey", "moccasin", "C1"])
ax.bar_label(bars, fmt="{:.0%}", padding=3)
ax.set(xlim=(0, 1.15), xticks=[], title="right, of 60 test images")
ax.spines[["top", "right", "bottom"]].set_visible(False)
