"""Vertex enumeration against SciPy's (Qhull's) intersection of half-spaces."""

import numpy as np
import pytest
from scipy.spatial import HalfspaceIntersection, cKDTree

from patternfold.dc import Polytope


def halfspaces(kind: str, dim: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Random planes, or planes with small whole coefficients that meet in common vertices."""
    n = 24 if dim < 6 else 14
    if kind == "random":
        normals = rng.normal(size=(n, dim))
        return normals / np.linalg.norm(normals, axis=1)[:, None], rng.uniform(0.3, 1.2, n)
    normals = rng.integers(-1, 2, (n, dim)).astype(float)
    normals[~normals.any(axis=1), 0] = 1
    size = np.abs(normals).sum(axis=1)
    return normals, 0.5 * size if kind == "halves" else np.maximum(1.0, size - 1)


def same_points(actual: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    for a, b in ((actual, expected), (expected, actual)):
        assert cKDTree(a).query(b)[0].max() < tolerance


@pytest.mark.parametrize("dim", range(1, 8))
@pytest.mark.parametrize("kind", ["random", "halves", "through vertices"])
def test_same_vertices_as_scipy(dim: int, kind: str) -> None:
    for seed in range(6 if dim < 6 else 2):
        rng = np.random.default_rng(seed)
        normals, offsets = halfspaces(kind, dim, rng)
        polytope = Polytope(-np.ones(dim), np.ones(dim))
        for normal, offset in zip(normals, offsets, strict=True):
            polytope.cut(normal, offset)
        box = np.concatenate([np.eye(dim), -np.eye(dim)])
        planes = np.concatenate([normals, box]), np.append(offsets, np.ones(2 * dim))
        if dim == 1:
            ends = planes[1] / np.abs(planes[0][:, 0])
            expected = np.array(
                [[-ends[planes[0][:, 0] < 0].min()], [ends[planes[0][:, 0] > 0].min()]]
            )
        else:
            stacked = np.column_stack([planes[0], -planes[1]])
            expected = HalfspaceIntersection(stacked, np.zeros(dim)).intersections
        # Solutions of systems whose condition is some 1e4 at worst.
        same_points(polytope.vertices, expected, 1e-9)
        unique = np.unique(polytope.vertices.round(9), axis=0)
        assert len(unique) == len(polytope.vertices)
        assert (polytope.vertices @ normals.T <= offsets + 1e-9).all()
        check_edges(polytope)
        if kind != "random" and dim > 2:
            assert (polytope.active.sum(axis=1) > dim).any()  # degenerate indeed


def check_edges(polytope: Polytope) -> None:
    """Edges are distinct, lie on d − 1 planes, and Euler's bound on their number holds."""
    start, stop = polytope.edges.T
    assert len(np.unique(np.sort(polytope.edges, axis=1), axis=0)) == len(start)
    for a, b in list(zip(start, stop, strict=True))[:40]:
        shared = polytope.normals[polytope.active[a] & polytope.active[b]]
        rank = np.linalg.matrix_rank(shared) if len(shared) else 0
        assert rank == polytope.dim - 1
    degree = np.bincount(polytope.edges.ravel(), minlength=len(polytope.vertices))
    assert degree.min() >= polytope.dim  # every vertex has at least d neighbours
    if polytope.dim == 3:
        assert len(polytope.vertices) - len(start) + count_facets(polytope) == 2


def count_facets(polytope: Polytope) -> int:
    """Constraints that hold on a face of dimension d − 1, each face counted once."""
    faces = {
        column.tobytes()
        for column in polytope.active.T
        if np.linalg.matrix_rank(
            polytope.vertices[column][1:] - polytope.vertices[column][:1], tol=1e-9
        )
        == polytope.dim - 1
    }
    return len(faces)


def test_hundreds_of_tangent_cuts() -> None:
    """Cuts that touch a ball: the polytope closes in on it from outside."""
    rng = np.random.default_rng(0)
    polytope = Polytope(-np.ones(4), np.ones(4))
    for normal in rng.normal(size=(300, 4)):
        polytope.cut(normal, float(np.linalg.norm(normal)) * 0.8)
    radii = np.linalg.norm(polytope.vertices, axis=1)
    assert radii.min() >= 0.8
    assert radii.max() < 1.2
    check_edges(polytope)


def test_repeated_and_redundant_cuts_change_nothing() -> None:
    polytope = Polytope(np.zeros(3), np.ones(3))
    polytope.cut(np.ones(3), 1.5)
    before = polytope.vertices.copy()
    for normal, offset in ((np.ones(3), 1.5), (np.ones(3), 2.0), (np.array([1.0, 0, 0]), 1.0)):
        cut = polytope.cut(normal, offset)
        assert cut.n_new == 0
        assert cut.kept.all()
    np.testing.assert_array_equal(polytope.vertices, before)


def test_an_empty_rest_is_refused() -> None:
    with pytest.raises(ValueError, match="no interior"):
        Polytope(np.zeros(2), np.ones(2)).cut(np.ones(2), -1.0)
