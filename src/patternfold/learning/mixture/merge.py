"""Parts merged into groups: those that share images, and whose manifolds are near.

Parts of one kind lie along a continuum, and images between two of them belong to both; images
between two kinds are few. So parts are the nodes of a graph whose edges are the images shared, cut
where least is cut: by the leading eigenvectors of the normalised graph and a tree over them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csr_matrix
from scipy.spatial.distance import pdist

MOST_GROUPS = 30
"""Groups that are looked for where their number is to be chosen."""

APART = 0.1
"""Least gap between two eigenvalues of the graph at which it is cut into groups by choice: kinds
hardly share images, while what a continuum shares falls off slowly."""

TOGETHER = 0.5
"""Least eigenvalue of a group by choice: it keeps most of its images to itself."""

NEARLY = 0.7
"""Share of the widest gap from which another is nearly as wide: learning from other images may
well exchange them."""

TETHER, ITSELF = 0.5, 0.05
"""Images that two manifolds no farther apart than images are from their own count as, and those
that a part shares with itself: a part that shares nothing is a group of its own."""

KEPT = 0.15
"""Share of the images that a part has for itself, by which it shares them with itself: a small kind
of one part does not fall to another for a single image between them."""


class Merged(NamedTuple):
    """The group of each part, and how it was found.

    ``tree`` has rows as those of `scipy.cluster.hierarchy.linkage`. Of the leading ``eigenvalues``
    of the graph as many are near 1 as there are groups that share nothing.
    """

    groups: np.ndarray
    tree: np.ndarray
    eigenvalues: np.ndarray


def shared_images(
    part: np.ndarray, share: np.ndarray, weights: np.ndarray, n_parts: int
) -> np.ndarray:
    """How many images every two parts share, (P, P): Σ w r rᵀ without its diagonal."""
    shares = _as_matrix(part, share, n_parts)
    graph = (shares.T @ shares.multiply(weights[:, None]).tocsr()).toarray()
    np.fill_diagonal(graph, 0)
    return graph


def shared_by_others(
    part: np.ndarray,
    share: np.ndarray,
    other_part: np.ndarray,
    other_share: np.ndarray,
    weights: np.ndarray,
    n_parts: int,
    n_others: int,
) -> np.ndarray:
    """How many images every two parts share by way of other parts of the same images, (P, P).

    Σ_b n_ab n_cb / n_b, without its diagonal: of the n_ab images that part a has in common with an
    other part b, as many belong to part c as of all the images of b.
    """
    here = _as_matrix(part, share, n_parts)
    there = _as_matrix(other_part, other_share, n_others)
    weighted = there.multiply(weights[:, None]).tocsr()
    common = (here.T @ weighted).toarray()
    size = np.asarray(weighted.sum(axis=0)).ravel()
    graph = common / np.maximum(size, 1e-12) @ common.T
    np.fill_diagonal(graph, 0)
    return graph


def kept_images(
    part: np.ndarray, share: np.ndarray, weights: np.ndarray, n_parts: int
) -> np.ndarray:
    """How many images each part has for itself, (P,): Σ w r²."""
    return np.bincount(part.ravel(), (weights[:, None] * share**2).ravel(), n_parts)


def merge(
    graph: np.ndarray,
    near: np.ndarray,
    n_groups: int | None,
    kept: np.ndarray | None = None,
) -> Merged:
    """Merge parts into so many groups, or into as many as the graph says.

    ``near`` (P, P) tells, from 0 to 1, how near the parts' manifolds are; ``kept`` (P,) how many
    images they have for themselves.
    """
    n_parts = len(graph)
    own = ITSELF + (0 if kept is None else KEPT * kept)
    # One manifold may lie in another, as a spot does in a magnified corner: both ways count.
    whole = graph + TETHER * np.sqrt(near * near.T) + own * np.eye(n_parts)
    if n_parts == 1:
        return Merged(np.zeros(1, int), np.empty((0, 4)), np.ones(1))
    values, vectors = _spectrum(whole)
    if n_groups is None:
        n_groups = chosen_count(values)
    n_groups = min(n_groups, n_parts)
    tree = linkage(pdist(_on_sphere(vectors[:, : max(2, n_groups)])), "ward")
    groups = fcluster(tree, n_groups, "maxclust") - 1
    return Merged(groups, tree, values[: MOST_GROUPS + 1])


def group_shares(groups: np.ndarray, part: np.ndarray, share: np.ndarray) -> np.ndarray:
    """How much of each image belongs to every group, (N, G)."""
    total = np.zeros((len(part), int(groups.max()) + 1))
    rows = np.arange(len(part))
    for k in range(part.shape[1]):
        total[rows, groups[part[:, k]]] += share[:, k]
    return total


def with_their_images(
    groups: np.ndarray, part: np.ndarray, share: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Move parts whose images all belong to another group there: a part has images of its own."""
    groups, first = groups.copy(), part[:, 0]
    for _ in range(len(groups)):
        found = group_shares(groups, part, share).argmax(axis=1)
        stay = np.bincount(first, weights * (found == groups[first]), len(groups))
        alone = np.bincount(groups)[groups] == 1
        left = np.flatnonzero((stay == 0) & ~alone & (np.bincount(first, weights, len(groups)) > 0))
        if not len(left):
            break
        own = first == left[0]
        groups[left[0]] = np.bincount(found[own], weights[own]).argmax()
    return groups


def chosen_count(values: np.ndarray) -> int:
    """Number of groups at the widest gap between two eigenvalues, 1 if none is wide."""
    return likely_counts(values)[0]


def likely_counts(values: np.ndarray) -> list[int]:
    """Numbers of groups at the widest gap and at those nearly as wide, the likeliest first."""
    values = np.append(values, 0.0)[: MOST_GROUPS + 1]
    own = int((values[:-1] >= TOGETHER).sum())
    gaps = -np.diff(values)[: max(1, own)]
    order = np.argsort(-gaps, kind="stable")
    if gaps[order[0]] < APART:
        return [1]
    return [int(k) + 1 for k in order if gaps[k] >= NEARLY * gaps[order[0]]]


def _as_matrix(part: np.ndarray, share: np.ndarray, n_parts: int) -> csr_matrix:
    """Shares as a sparse matrix (N, P)."""
    n_images, count = part.shape
    rows = np.repeat(np.arange(n_images), count)
    return csr_matrix((share.ravel(), (rows, part.ravel())), (n_images, n_parts))


def _spectrum(graph: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, largest first, and vectors of D^-1/2 W D^-1/2."""
    root = np.sqrt(np.maximum(graph.sum(axis=1), 1e-12))
    values, vectors = np.linalg.eigh(graph / root[:, None] / root[None])
    # The sign of a vector is the solver's choice, and of no consequence to distances.
    return values[::-1], vectors[:, ::-1]


def _on_sphere(rows: np.ndarray) -> np.ndarray:
    """Rows of unit norm: parts with many and with few images count alike."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
