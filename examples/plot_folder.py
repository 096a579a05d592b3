"""
Align a folder of pictures
==========================

Pictures in a folder become one pattern, and all of them are brought into its frame: in their own
colours and at their own resolution. The command line does the same with ``patternfold learn`` and
``patternfold align``.
"""

# %%
# A folder to begin with: an ancient coin from Pompeii, photographed once (it comes with
# scikit-image), laid down a dozen times at any angle and a little off the middle.

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from skimage import data, transform

folder = Path(tempfile.mkdtemp()) / "coins"
folder.mkdir()
coin = data.coins()[217:301, 3:87] / 255
background = np.median(coin[:4])
rng = np.random.default_rng(0)
dialled = rng.uniform(-180, 180, 12)
for i, angle in enumerate(dialled):
    turn = transform.rotate(coin, angle, cval=background)
    move = transform.AffineTransform(translation=rng.uniform(-5, 5, 2))
    photo = transform.warp(turn, move, cval=background) + rng.normal(0, 0.02, coin.shape)
    Image.fromarray((255 * photo.clip(0, 1)).astype(np.uint8)).save(folder / f"coin{i:02}.png")

# %%
# `read_images` prepares what it finds: grey, on a background of 0, on one canvas. It says what it
# did.

from patternfold import PATS
from patternfold.files import Preparation, read_images

found = read_images(folder, Preparation(size=(32, 32)))
print(found.images.shape, found.names[:2], *found.notes, sep="\n")

# %%
# The coin is nearly round: only its relief tells the angle. No reference is given.

model = PATS(n_atoms=16, transformation="rotation-translation", n_starts=1, random_state=0)
model.fit(found.images)
aligned = model.align(found.images)

# %%
# The coins as they lay, and the same aligned.

fig, axes = plt.subplots(2, 7, figsize=(9, 2.9), layout="constrained")
for line, images, name in zip(axes, (found.images, aligned), ("as given", "aligned"), strict=True):
    for ax, image in zip(line, [*images[:6], images.mean(axis=0)], strict=True):
        ax.imshow(image, cmap="gray")
        ax.set(xticks=[], yticks=[])
    line[0].set_ylabel(name)
axes[0, -1].set_title("mean of all")

# %%
# The angles that were found, against those that were dialled: the frame is the pattern's own, so
# that all differ by the same amount. scikit-image turns counter-clockwise.

difference = np.deg2rad(dialled) + model.parameters_[:, 0]
spread = np.angle(np.exp(1j * difference) / np.exp(1j * difference).mean())
print(f"{np.rad2deg(np.abs(spread)).max():.2f}° apart at most")
