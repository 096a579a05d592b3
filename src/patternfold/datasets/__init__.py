"""Image sets: packaged digits, folders the user names, and generated images."""

from patternfold.datasets.mnist import data_folder, load_mnist
from patternfold.datasets.synthetic import (
    place_on_canvas,
    protocol_bounds,
    random_images,
    random_parameters,
    random_pattern,
    transform_images,
)

__all__ = [
    "data_folder",
    "load_mnist",
    "place_on_canvas",
    "protocol_bounds",
    "random_images",
    "random_parameters",
    "random_pattern",
    "transform_images",
]
