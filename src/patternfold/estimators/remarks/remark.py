"""A remark: a code that programs know, a sentence that people read, and the images it is about."""

from __future__ import annotations

from typing import NamedTuple

CODES = {
    "interrupted": "Learning was interrupted.",
    "few-images": "The pattern may show peculiarities of few images.",
    "at-bound": "Many images have a parameter at its bound.",
    "error-falling": "More atoms would lower the error.",
    "idle-atoms": "Fewer atoms would do.",
    "edge": "The pattern reaches the edge of its window, or is a frame.",
    "quarter-turns": "Angles lie at quarter turns of one another.",
    "spread-grew": "The images differ more after alignment than before.",
    "no-better": "The pattern explains hardly more than the mean image, unaligned.",
    "two-poses": "Images fit two poses nearly equally well.",
    "two-groups": "The images form two groups.",
    "one-kind": "No number of kinds was asked for, and all images were taken for one.",
    "other-kinds": "Another number of kinds is nearly as likely.",
    "strangers": "Some images fit much worse than the others.",
    "polarity": "Some images fit when light and dark are exchanged.",
    "blank": "Some images show nothing.",
    "confused": "A class is often taken for another.",
}
"""What each code stands for."""


class Remark(NamedTuple):
    """One remark; as text it is its sentence."""

    code: str
    text: str
    images: tuple[int, ...] = ()

    def __str__(self) -> str:
        """Return the sentence."""
        return self.text
