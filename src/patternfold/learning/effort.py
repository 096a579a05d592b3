"""How hard a projection searches: one record with named levels, the same for every door."""

from __future__ import annotations

from dataclasses import dataclass, replace

from patternfold._validation import lookup


@dataclass(frozen=True)
class Effort:
    """How hard a projection searches.

    Candidates from a bank of templates are improved on blurred images of few pixels, the better
    ones, *rivals*, on part of the pixels, and the best of these, *finalists*, on all.

    Attributes
    ----------
    coarse_side : int
        Pixels along the longer side of the blurred images that the bank is compared with.
    spacing : float
        Mean displacement between neighbouring templates, where the image spans 2.
    n_candidates : int
        Best templates per image that are improved.
    coarse_steps : int
        Most steps of each candidate on the blurred image; with 0 all of them are rivals.
    n_rivals : int
        Most candidates that go on to part of the pixels.
    rival_ratio : float
        A rival costs at most so many times the best candidate. Unfinished searches on blurred
        images rank their ends only roughly.
    rival_share : float
        What a rival may cost besides, as a share of the image's energy.
    middle_steps : int
        Most steps of each rival; with 0 all of them are finalists.
    n_finalists : int
        Most rivals that go on to all pixels.
    finalist_ratio : float
        A finalist costs at most so many times the best rival.
    finalist_share : float
        What a finalist may cost besides, as a share of the image's energy: more than 0 where all
        poses are asked for that fit as well as the best one, which a perfect fit leaves far behind
        before they have come to their ends.
    max_iter : int
        Most steps on all pixels.
    newton_after : int
        Steps before second derivatives of the pattern are taken, which cost twice as much and
        make the difference where the residual is large.
    misfit : float
        Share of an image's energy that a residual with structure may have and still be a match;
        an image above it has many local optima, and is searched again.
    unfinished : float
        Such a share above which a search that took all of its steps goes on from where it is:
        residuals with structure make steps short, noise does not.
    again : Effort, optional
        How such images are searched again.

    Examples
    --------
    >>> from patternfold import Effort
    >>> Effort(n_finalists=4).n_finalists  # more poses are followed to the end
    4
    """

    coarse_side: int = 12
    spacing: float = 0.13
    n_candidates: int = 8
    coarse_steps: int = 4
    n_rivals: int = 3
    rival_ratio: float = 1.5
    rival_share: float = 0.02
    middle_steps: int = 4
    n_finalists: int = 2
    finalist_ratio: float = 1.1
    finalist_share: float = 0.0
    max_iter: int = 4
    newton_after: int = 4
    misfit: float = 0.03
    unfinished: float = 0.005
    again: Effort | None = None

    def for_all_poses(self) -> Effort:
        """Return the effort that also finds other poses which fit as well, and ends at minima."""
        steps = {} if self.newton else {"max_iter": 8, "newton_after": 8}
        return replace(
            self,
            **steps,
            n_candidates=max(self.n_candidates, 24),
            n_rivals=max(self.n_rivals, 12),
            rival_ratio=max(self.rival_ratio, 2.0),
            rival_share=max(self.rival_share, 0.04),
            n_finalists=max(self.n_finalists, 8),
            finalist_ratio=max(self.finalist_ratio, 1.2),
            finalist_share=max(self.finalist_share, 0.01),
            again=None if self.again is None else self.again.for_all_poses(),
        )

    @property
    def newton(self) -> bool:
        """Whether second derivatives may be taken."""
        return self.newton_after < self.max_iter


_AGAIN = Effort(
    coarse_side=16,
    spacing=0.1,
    n_candidates=128,
    n_rivals=16,
    rival_ratio=2.5,
    n_finalists=6,
    finalist_ratio=1.2,
    max_iter=40,
)

EFFORTS: dict[str, Effort] = {
    "quick": Effort(n_finalists=1),
    "normal": Effort(again=_AGAIN),
    "thorough": Effort(
        misfit=-1.0,
        again=replace(
            _AGAIN,
            n_candidates=200,
            n_rivals=64,
            rival_ratio=4.0,
            n_finalists=24,
            finalist_ratio=1.5,
        ),
    ),
}
"""Efforts by name."""

LEARNING = Effort(n_candidates=4, coarse_steps=0, middle_steps=0)
"""While a pattern is learned, few candidates and steps will do: it moves on, and λ with it."""

PAPER = Effort(coarse_side=20, n_candidates=1, max_iter=30)
"""The paper's projection: the best template, then line searches."""


def as_effort(effort: str | Effort) -> Effort:
    """Return an effort from its name, or the record itself."""
    if isinstance(effort, Effort):
        return effort
    if not isinstance(effort, str):
        raise TypeError(f"effort={effort!r} must be a name ({', '.join(EFFORTS)}) or an Effort.")
    return lookup("effort", effort, EFFORTS)
