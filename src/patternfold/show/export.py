"""Patterns for other programs: PNG and SVG pictures, CSV tables of atoms."""

from __future__ import annotations

import base64
import csv
import io
from pathlib import Path

import numpy as np

from patternfold._validation import lookup
from patternfold._writing import write_bytes
from patternfold.model.grid import Grid
from patternfold.model.pattern import Pattern
from patternfold.show.png import encode_png, to_grey

UNDERSHOOT = 0.1
"""Share of the greatest value below zero that is cut off, so that the background is even: sums of
atoms swing a little around it."""


def export_pattern(
    pattern: Pattern,
    path: str | Path,
    shape: tuple[int, int] = (512, 512),
    background: str = "dark",
) -> None:
    """Write a pattern as ``.png``, ``.svg`` or ``.csv``, by the ending of the name.

    Parameters
    ----------
    pattern : Pattern
        The pattern p.
    path : path
        The file to write.
    shape : (H, W), default=(512, 512)
        Size of the picture in pixels; a pattern can be sampled as finely as one likes.
    background : {"dark", "light"}
        How pictures show 0, the background: in black, or in white with what is bright in black.

    Examples
    --------
    >>> pattern_to_csv(Pattern([1.0], [[0.0, 0.5, 0.0, 0.2, 0.1]])).splitlines()
    ['coef,psi,tau_x,tau_y,sigma_x,sigma_y', '1.0,0.0,0.5,0.0,0.2,0.1']
    """
    path = Path(path)
    writers = {
        ".png": lambda: pattern_to_png(pattern, shape, background),
        ".svg": lambda: pattern_to_svg(pattern, shape, background).encode(),
        ".csv": lambda: pattern_to_csv(pattern).encode(),
    }
    content = lookup("ending", path.suffix.lower(), writers)()
    write_bytes(path, content)


def pattern_to_png(
    pattern: Pattern, shape: tuple[int, int] = (512, 512), background: str = "dark"
) -> bytes:
    """Return a grey picture, from 0 in black to the greatest value in white, or the other way.

    Values below 0 are darker than the background, which is grey then, unless they are few percent.

    Examples
    --------
    >>> pattern_to_png(Pattern([1.0], [[0.0, 0.0, 0.0, 0.5, 0.2]]), (64, 64))[1:4]
    b'PNG'
    """
    invert = lookup("background", background, {"dark": False, "light": True})
    values = pattern.render(shape)
    low, high = float(values.min()), float(values.max())
    grey = to_grey(values, 0.0 if low > -UNDERSHOOT * high else low, high)
    return encode_png(255 - grey if invert else grey)


def pattern_to_csv(pattern: Pattern) -> str:
    """Return one line per atom: its coefficient and its parameters, with all digits.

    Examples
    --------
    >>> pattern_to_csv(Pattern([1.0], [[0.0, 0.5, 0.0, 0.2, 0.1]])).splitlines()[1]
    '1.0,0.0,0.5,0.0,0.2,0.1'
    """
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["coef", *pattern.dictionary.parameters.names])
    for coef, gamma in zip(pattern.coef, pattern.gamma, strict=True):
        writer.writerow([repr(float(v)) for v in (coef, *gamma)])
    return file.getvalue()


def pattern_to_svg(
    pattern: Pattern, shape: tuple[int, int] = (512, 512), background: str = "dark"
) -> str:
    """Return the picture with an outline of each atom where it has fallen as at distance σ.

    Atoms that add are drawn in orange, atoms that subtract in blue; the strength of the line tells
    the coefficient.

    Examples
    --------
    >>> pattern = Pattern([1.0, -0.5], [[0.0, 0.0, 0.0, 0.5, 0.2], [0.0, 0.1, 0.0, 0.1, 0.1]])
    >>> svg = pattern_to_svg(pattern, (64, 64))
    >>> svg[:4], svg.count("<ellipse")
    ('<svg', 2)
    """
    left, right, top, bottom = Grid(*shape).window
    picture = base64.b64encode(pattern_to_png(pattern, shape, background)).decode()
    box = f"{left:g} {top:g} {right - left:g} {bottom - top:g}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" '
        f'width="{shape[1]}" height="{shape[0]}" role="img">',
        f"<title>Pattern of {pattern.n_atoms} atoms</title>",
        f'<image x="{left:g}" y="{top:g}" width="{right - left:g}" height="{bottom - top:g}" '
        f'href="data:image/png;base64,{picture}"/>',
        '<g fill="none" stroke-width="0.008">',
        *_ellipses(pattern),
        "</g>",
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _ellipses(pattern: Pattern) -> list[str]:
    """One ellipse per atom, where the dictionary knows their outlines."""
    outlines = pattern.dictionary.ellipses(pattern.gamma)
    if outlines is None:
        return []
    strongest = np.abs(pattern.coef).max(initial=0) or 1.0
    lines = []
    for coef, (x, y, a, b, angle) in zip(pattern.coef, outlines, strict=True):
        colour = "#ff9d3b" if coef > 0 else "#4aa3ff"
        lines.append(
            f'<ellipse rx="{a:.5f}" ry="{b:.5f}" stroke="{colour}" '
            f'stroke-opacity="{0.25 + 0.75 * abs(coef) / strongest:.2f}" '
            f'transform="translate({x:.5f} {y:.5f}) rotate({np.degrees(angle):.3f})">'
            f"<title>coefficient {coef:.4g}</title></ellipse>"
        )
    return lines
