"""
More images than memory
=======================

A stack in a file is learned from block by block; results go to a file in the same way. The stack
here is small, so that the example runs in seconds.
"""

# %%
# Four hundred images in a zarr array, in 8 bits.

import csv
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import zarr

import patternfold as pf

folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(4)
truth = pf.datasets.random_pattern(4, rng)
images, poses = pf.datasets.random_images(
    truth, 400, rng, "rotation-translation", shape=(24, 24), noise=0.005
)
levels = np.interp(images, [images.min(), images.max()], [0, 255]).round().astype(np.uint8)
stack = zarr.create_array(folder / "stack.zarr", data=levels, chunks=(100, 24, 24))
print(stack.info)

# %%
# The path takes the place of an array. The pattern grows on some images and settles on all.
# The background of these images is not 0: each has an offset of its own.

model = pf.PATS(4, transformation="rotation-translation", offset=True, random_state=0)
model.fit(folder / "stack.zarr")

# %%
# Poses are written as they are found; ``resume=True`` would go on after a break.

pf.stream(model, folder / "stack.zarr", folder / "poses.csv")
with (folder / "poses.csv").open(newline="") as file:
    rows = list(csv.DictReader(file))
print(len(rows), "rows:", rows[0])

# %%
# The pattern, and the angles of all images against the true ones. The frame of the pattern is its
# own: all angles differ by the same amount.

angles = np.array([float(row["theta"]) for row in rows])
turn = np.angle(np.exp(1j * (angles - poses[:, 0])).mean())
fig, (left, right) = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
left.imshow(model.pattern_.render((96, 96)), cmap="gray")
left.set(xticks=[], yticks=[], title="learned from 400 images in a file")
right.plot(poses[:, 0], np.angle(np.exp(1j * (angles - turn))), ".", ms=3)
right.set(xlabel="true angle", ylabel="angle found")
