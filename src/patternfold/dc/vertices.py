"""All vertices of a polytope, kept up to date while half-spaces cut it.

A vertex knows the constraints that are active there, and an edge joins two vertices that share
d − 1 of them with independent normals. A cut a·x ≤ b removes the vertices beyond it and makes a
new one on each edge that it crosses; only the edges inside the new facet have to be found, from
what its vertices share. Vertices on the plane, up to rounding, stay and become part of the facet,
so that cuts through vertices or along edges and facets are handled as they are, unperturbed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

TOLERANCE = 1e-10
"""A vertex this near a plane, in units of the coordinates' size, lies on it."""


class Cut(NamedTuple):
    """What a cut did: which of the old vertices are left, and how many new ones follow them."""

    kept: np.ndarray
    n_new: int


class Polytope:
    """A bounded polytope {x : a_k·x ≤ b_k} with its vertices and edges.

    It starts as a box. Coordinates should be of similar size, for a tolerance is common to all.

    Parameters
    ----------
    lower, upper : arrays of shape (d,)
        The box.

    Attributes
    ----------
    normals, offsets : arrays of shape (F, d) and (F,)
        Constraints that are active at some vertex, normals of length 1.
    vertices : array of shape (V, d)
    active : boolean array of shape (V, F)
        Which constraints hold with equality.
    edges : integer array of shape (E, 2)

    Examples
    --------
    >>> square = Polytope(np.zeros(2), np.ones(2))
    >>> cut = square.cut(np.array([1.0, 1.0]), 0.5)
    >>> sorted(map(tuple, square.vertices.tolist()))
    [(0.0, 0.0), (0.0, 0.5), (0.5, 0.0)]
    """

    def __init__(self, lower: np.ndarray, upper: np.ndarray):
        lower, upper = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
        self.dim = d = len(lower)
        self.size = float(max(1.0, np.abs(lower).max(), np.abs(upper).max()))
        bits = (np.arange(2**d)[:, None] >> np.arange(d)[None]) & 1
        self.vertices = np.where(bits, upper, lower)
        self.normals = np.concatenate([-np.eye(d), np.eye(d)])
        self.offsets = np.concatenate([-lower, upper])
        self.active = np.concatenate([bits == 0, bits == 1], axis=1)
        corners = np.arange(2**d)
        pairs = [np.stack([corners, corners ^ (1 << k)], axis=1) for k in range(d)]
        edges = np.concatenate(pairs)
        self.edges = edges[edges[:, 0] < edges[:, 1]]
        self._rng = np.random.default_rng(0)
        self._keys = self._new_keys(2 * d)

    def cut(self, normal: np.ndarray, offset: float) -> Cut:
        """Keep the part with normal·x ≤ offset.

        A cut that no vertex lies beyond changes nothing. One that leaves no interior is refused.
        """
        length = float(np.linalg.norm(normal))
        normal, offset = np.asarray(normal, np.float64) / length, float(offset) / length
        slack = offset - self.vertices @ normal
        tolerance = TOLERANCE * self.size
        beyond, inside = slack < -tolerance, slack > tolerance
        if not beyond.any():
            return Cut(np.ones(len(slack), bool), 0)
        if not inside.any():
            raise ValueError("The cut leaves no interior: no vertex lies within it.")
        start, stop = self.edges.T
        stop, start = np.where(beyond[start], start, stop), np.where(beyond[start], stop, start)
        crossing = beyond[stop] & inside[start]
        inner, outer = start[crossing], stop[crossing]
        share = (slack[inner] / (slack[inner] - slack[outer]))[:, None]
        points = self.vertices[inner] + share * (self.vertices[outer] - self.vertices[inner])
        active = self.active[inner] & self.active[outer]
        kept = ~beyond
        place = np.cumsum(kept) - 1
        whole = kept[self.edges].all(axis=1)
        n_kept = int(kept.sum())
        self._add_constraint(normal, offset, np.abs(slack[kept]) <= tolerance, active, kept)
        self.vertices = np.concatenate([self.vertices[kept], points])
        new = n_kept + np.arange(len(points))
        old_edges = place[self.edges[whole]]
        spokes = np.stack([place[inner], new], axis=1)
        self.edges = np.concatenate([old_edges, spokes, self._facet_edges(old_edges)])
        self._drop_idle_constraints()
        return Cut(kept, len(points))

    def _add_constraint(
        self,
        normal: np.ndarray,
        offset: float,
        on_plane: np.ndarray,
        new_active: np.ndarray,
        kept: np.ndarray,
    ) -> None:
        """Append the constraint, and the rows of new vertices to those of the kept ones."""
        column = np.concatenate([on_plane, np.ones(len(new_active), bool)])
        rows = np.concatenate([self.active[kept], new_active])
        self.active = np.concatenate([rows, column[:, None]], axis=1)
        self.normals = np.concatenate([self.normals, normal[None]])
        self.offsets = np.append(self.offsets, offset)
        self._keys = np.concatenate([self._keys, self._new_keys(1)])

    def _facet_edges(self, old_edges: np.ndarray) -> np.ndarray:
        """Edges inside the last constraint's facet that are not among the old ones."""
        members = np.flatnonzero(self.active[:, -1])
        active = self.active[members]
        simple = active.sum(axis=1) == self.dim
        pairs = [members[np.flatnonzero(simple)[self._simple_pairs(active[simple])]]]
        if not simple.all():
            pairs.append(members[_degenerate_pairs(active, ~simple, self.dim)])
        found = np.sort(np.concatenate(pairs), axis=1)
        if not (~simple).any():
            return found  # two old vertices on the plane would have one constraint more
        n = len(self.active)
        known = np.sort(old_edges, axis=1) @ np.array([n, 1])
        return found[~np.isin(found @ np.array([n, 1]), known)]

    def _simple_pairs(self, active: np.ndarray) -> np.ndarray:
        """Pairs of vertices with d constraints each that share all but one.

        The sum of random keys of a vertex's constraints, less one of them, is the same for the
        two ends of an edge: sorting brings them together.
        """
        if not len(active):
            return np.empty((0, 2), np.int64)
        listed = np.nonzero(active)[1].reshape(len(active), self.dim)
        keys = self._keys[listed]
        # All but the new constraint, which is last and which both ends share.
        shared = keys.sum(axis=1, keepdims=True) - keys[:, :-1]
        owner = np.repeat(np.arange(len(active)), self.dim - 1)
        flat = shared.ravel()
        order = np.argsort(flat, kind="stable")
        same = flat[order[1:]] == flat[order[:-1]]
        return np.stack([owner[order[:-1][same]], owner[order[1:][same]]], axis=1)

    def _drop_idle_constraints(self) -> None:
        used = self.active.any(axis=0)
        if not used.all():
            self.active = np.ascontiguousarray(self.active[:, used])
            self.normals, self.offsets = self.normals[used], self.offsets[used]
            self._keys = self._keys[used]

    def _new_keys(self, n: int) -> np.ndarray:
        """Random 64-bit numbers; sums of them, which may wrap around, tell sets apart."""
        return self._rng.integers(0, 2**64, size=n, dtype=np.uint64)


def _degenerate_pairs(active: np.ndarray, degenerate: np.ndarray, dim: int) -> np.ndarray:
    """Neighbours of vertices with more than d active constraints, inside a facet.

    Two vertices are neighbours if no third one shares all that they share.
    """
    as_float = active.astype(np.float32)
    sources = np.flatnonzero(degenerate)
    common = as_float[sources] @ as_float.T
    row, other = np.nonzero(common >= dim - 1)
    source = sources[row]
    # Each pair once; between two degenerate vertices, from the first of them.
    keep = (other != source) & ~(degenerate[other] & (other < source))
    pairs = np.stack([source[keep], other[keep]], axis=1)
    adjacent = [np.empty((0, 2), np.int64)]
    for part in np.array_split(pairs, max(1, len(pairs) * len(active) // 2**24)):
        shared = as_float[part[:, 0]] * as_float[part[:, 1]]
        holders = (shared @ as_float.T >= shared.sum(axis=1, keepdims=True)).sum(axis=1)
        adjacent.append(part[holders == 2])
    return np.concatenate(adjacent)
