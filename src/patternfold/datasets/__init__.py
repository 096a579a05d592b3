"""Image sets: packaged digits, folders the user names, and generated images."""

from patternfold.datasets.faces import load_frey_faces, load_yale_faces
from patternfold.datasets.mnist import load_mnist
from patternfold.datasets.plankton import load_plankton
from patternfold.datasets.stored import MissingData, data_folder
from patternfold.datasets.synthetic import (
    place_on_canvas,
    protocol_bounds,
    random_images,
    random_parameters,
    random_pattern,
    transform_images,
)

__all__ = [
    "MissingData",
    "data_folder",
    "load_frey_faces",
    "load_mnist",
    "load_plankton",
    "load_yale_faces",
    "place_on_canvas",
    "protocol_bounds",
    "random_images",
    "random_parameters",
    "random_pattern",
    "transform_images",
]
