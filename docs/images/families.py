"""Draw families.png: a letter under each family, and bent worms before and after alignment."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from patternfold import PATS, Pattern, datasets, manifold

FAMILIES = {
    "shear": [0.4],
    "bend": [0.9],
    "projective": [0.3, 0.2],
    "elastic": [0.2, -0.1, 0.1, 0.15, 0.2, -0.15],
    "stroke-width": [0.06],
}
LETTER = Pattern(
    np.ones(4),
    [
        [np.pi / 2, -0.35, 0.0, 0.65, 0.09],
        [0.0, -0.05, -0.52, 0.35, 0.09],
        [0.0, -0.08, -0.02, 0.3, 0.09],
        [0.0, 0.0, 0.52, 0.35, 0.09],
    ],
)
BOUNDS = {"s": (0.7, 1.4), "tx": (-0.35, 0.35), "ty": (-0.35, 0.35), "bend": (-2, 2)}


def show(ax: Axes, image: np.ndarray, title: str = "") -> None:
    """One picture, white on black."""
    ax.imshow(image, cmap="gray")
    ax.set(xticks=[], yticks=[])
    ax.set_title(title, fontsize=9)


figure, axes = plt.subplots(3, 6, figsize=(7.2, 3.9), layout="constrained")
show(axes[0, 0], LETTER.render((64, 64)), "pattern")
for ax, (name, lam) in zip(axes[0, 1:], FAMILIES.items(), strict=True):
    show(ax, manifold.render(LETTER, [lam], name, (64, 64)).reshape(64, 64), name)
worms = datasets.make_worms(40)
model = PATS(12, transformation="similarity+bend", bounds=BOUNDS, random_state=0)
model.fit(worms.images)
aligned = model.align(worms.images[:5])
for k in range(5):
    show(axes[1, k], worms.images[k], "worms" if k == 0 else "")
    show(axes[2, k], aligned[k], "aligned" if k == 0 else "")
show(axes[1, 5], model.pattern_.render((64, 64)), "learned")
show(axes[2, 5], model.align(worms.images).mean(axis=0), "mean of 40")
figure.savefig(Path(__file__).with_suffix(".png"), dpi=130)
