"""Frames, maps between pictures and frame, kinds of numbers, and how pictures are resampled."""

import numpy as np
import pytest
from scipy import ndimage

import patternfold as pf
from patternfold.cli.poses import pose_columns, pose_table
from patternfold.files import Placement, read_pictures
from patternfold.files.formats import read_originals
from patternfold.files.full_size import FullSize
from patternfold.files.kinds import Kind, common_kind, converted, writable
from patternfold.files.originals import Sampling, ground_of, warp_original
from patternfold.model.matrices import keeps_shapes, read_matrices
from patternfold.model.transformations import TRANSFORMATIONS
from patternfold.show.png import encode_png

CANVAS = (12, 16)
UNMOVED = np.array([[0.0, 0.0, 0.0, 1.0]])


def known(placements, shapes, lam=UNMOVED, **options):
    rows = np.broadcast_to(lam, (len(shapes), 4))
    return FullSize.of(pf.Similarity(), rows, CANVAS, placements, shapes, **options)


def test_pictures_of_one_size_have_a_frame_of_that_size():
    full = known([Placement(0.25, 2, 0)] * 2, [(48, 48)] * 2)
    assert full.frame.shape == (48, 48)
    np.testing.assert_allclose(full.matrices(), [np.eye(2, 3)] * 2, atol=1e-12)
    np.testing.assert_allclose(full.origins(), 0, atol=1e-12)


def test_the_frame_holds_all_pictures_at_the_finest_resolution():
    placements, shapes = [Placement(0.5, 0, 0), Placement(0.25, 4, 0)], [(24, 32), (40, 30)]
    full = known(placements, shapes)
    assert full.frame.shape == (48, 64)
    assert full.frame.placement == Placement(0.25, 0, 0)
    assert read_matrices(full.matrices()).scale == pytest.approx([0.5, 1])  # shown smaller
    assert known(placements, shapes, scale=0.5).frame.shape == (24, 32)


def test_matrices_and_maps_agree(rng):
    lam = pf.Similarity().parameters.sample(rng, 2)
    placements, shapes = [Placement(0.4, 1, 2), Placement(0.3, 2, 0)], [(20, 30), (40, 42)]
    for expand in (False, True):
        full = known(placements, shapes, lam, expand=expand)
        x, y = rng.uniform(0, 30, (2, 2, 5))
        across, down = full.to_frame(x, y)
        points = full.matrices() @ np.stack([x, y, np.ones_like(x)], axis=1)
        np.testing.assert_allclose(np.stack([across, down], axis=1), points, atol=1e-9)
        np.testing.assert_allclose(full.from_frame(across, down), [x, y], atol=1e-9)
        np.testing.assert_allclose(full.only(1).from_frame(across[1:], down[1:])[0], x[1:])


def test_frames_are_limited():
    tiny = np.array([[0.0, 0.0, 0.0, 1e-3]])
    with pytest.raises(ValueError, match=r"enlarged to 48000 × 48000 pixels, .* don't enlarge it"):
        known([Placement(0.25, 2, 0)], [(48, 48)], tiny, expand=True)


def turned(lam, x, y):
    c, s = np.cos(0.5), np.sin(0.5)
    return c * x + s * y - lam[0], c * y - s * x


def turned_back(lam, x, y):
    c, s = np.cos(0.5), np.sin(0.5)
    return c * (x + lam[0]) - s * y, c * y + s * (x + lam[0])


def test_families_without_matrices_are_sampled_point_by_point(rng):
    """A rotation that nobody knows to be affine gives the same picture as one with a matrix."""
    values = ndimage.gaussian_filter(rng.random((30, 40, 3)), (2, 2, 0))
    box = pf.Box(["k"], [-1.0], [1.0])
    hidden = pf.CustomTransformation(turned, box, [0.0], inverse=turned_back)
    place, shape = [Placement(0.4, 0, 0)], [(30, 40)]
    one = FullSize.of(hidden, np.zeros((1, 1)), CANVAS, place, shape)
    other = FullSize.of(pf.RotationTranslation(), np.array([[0.5, 0, 0]]), CANVAS, place, shape)
    y, x = np.mgrid[:30, :40].reshape(2, 1, -1).astype(float)
    places = np.stack(one.from_frame(x, y)[::-1]).reshape(2, 30, 40)
    fill = np.array([0.1, 0.2, 0.3])
    for interpolation in ("linear", "cubic"):
        by_points = warp_original(values, Sampling((30, 40), None, places), fill, interpolation)
        sampling = Sampling((30, 40), other.matrices()[0])
        by_matrix = warp_original(values, sampling, fill, interpolation)
        np.testing.assert_allclose(by_points, by_matrix, atol=1e-9)
        np.testing.assert_allclose(by_matrix[0, 0], fill, atol=1e-3)


def test_gaps_stay_gaps():
    values = np.ones((20, 20), np.float32)
    values[8:12, 8:12] = np.nan
    shifted = Sampling((20, 20), np.array([[1.0, 0, 3.2], [0, 1, 0]]))
    for interpolation in ("linear", "cubic"):
        result = warp_original(values, shifted, ground_of(values).level, interpolation)
        assert np.isnan(result).sum() == 16
        assert np.isnan(result[8:12, 11:15]).all()
        assert result[0, 0] == 1


def test_the_background_is_that_within_a_frame(rng):
    values = np.full((40, 50, 3), (60, 90, 120), np.uint8)
    values[:2], values[-2:], values[:, :2], values[:, -2:] = 250, 250, 250, 250
    values[15:25, 20:30] = 10
    ground = ground_of(values)
    np.testing.assert_allclose(ground.level, (60, 90, 120), atol=1)
    assert not ground.counts[[0, 1, -1], 20].any()
    assert ground.counts[10, 10]
    alpha = np.dstack([values, np.full((40, 50), 255, np.uint8)])
    np.testing.assert_allclose(ground_of(alpha).level, (60, 90, 120), atol=1)


def test_kinds_stand_together(rng):
    grey = rng.integers(256, size=(3, 4), dtype=np.uint8)
    deep = rng.integers(65536, size=(3, 4, 3), dtype=np.uint16)
    clear = np.dstack([grey, 255 - grey])
    both = common_kind([Kind.of(grey), Kind.of(deep)])
    assert both == Kind(np.dtype(np.uint16), 3)
    np.testing.assert_array_equal(converted(grey, both)[..., 1], 257 * grey.astype(int))
    np.testing.assert_array_equal(converted(deep, both), deep)
    all_three = common_kind([Kind.of(grey), Kind.of(deep), Kind.of(clear)])
    assert converted(grey, all_three)[..., 3].min() == 65535
    np.testing.assert_array_equal(
        converted(clear, all_three)[..., 3], 257 * (255 - grey).astype(int)
    )
    mixed = common_kind([Kind.of(grey), Kind.of(grey.astype(np.float64))])
    assert mixed == Kind(np.dtype(np.float32), 1)
    np.testing.assert_allclose(converted(grey, mixed), grey / 255, rtol=1e-6)
    assert writable(grey > 100).max() == 255
    assert writable(grey.astype(np.float16)).dtype == np.float32


def test_sixteen_bits_of_colour_are_read(tmp_path, rng):
    for channels in (2, 3, 4):
        values = rng.integers(65536, size=(9, 8, channels), dtype=np.uint16)
        (tmp_path / "x.png").write_bytes(encode_png(values))
        (picture,), _ = read_pictures(tmp_path / "x.png")
        assert (picture.source.shape, picture.source.dtype) == (values.shape, np.uint16)
        np.testing.assert_array_equal(next(read_originals([picture.source])), values)


def test_angles_and_scales_of_matrices(rng):
    lam = pf.Affine().parameters.sample(rng, 5)
    turn = read_matrices(pf.matrices(lam, "affine", (20, 20)))
    np.testing.assert_allclose(turn.angle, -np.rad2deg(lam[:, 0]))
    np.testing.assert_allclose(turn.scale_x, lam[:, 3])
    np.testing.assert_allclose(turn.scale_y, lam[:, 4])
    np.testing.assert_allclose(turn.scale, np.sqrt(lam[:, 3] * lam[:, 4]))
    affine = {name: kind for name, kind in TRANSFORMATIONS.items() if kind.is_affine}
    assert {name for name, kind in affine.items() if keeps_shapes(kind())} == {
        "translation",
        "rotation-translation",
        "similarity",
        "stroke-width",
    }


def test_what_the_macro_for_imagej_does(rng):
    """Shift, turn clockwise about the middle, scale: as the matrix says, with the origin there."""
    lam = pf.Similarity().parameters.sample(rng, 1)
    full = known([Placement(0.25, 2, 0)], [(48, 48)], lam)
    matrix, (shift,) = full.matrices()[0], full.origins()
    turn = read_matrices(matrix[None])
    c, s = np.cos(np.deg2rad(turn.angle[0])), np.sin(np.deg2rad(turn.angle[0]))
    clockwise = np.array([[c, -s], [s, c]])  # y points down
    middle, point = np.array([23.5, 23.5]), rng.uniform(0, 48, 2)
    moved = middle + clockwise @ (point - shift - middle) / turn.scale[0]
    np.testing.assert_allclose(moved, matrix @ [*point, 1], atol=1e-9)


def test_confidence_and_second_angles_come_from_the_next_best_pose():
    full = known([Placement(0.25, 2, 0)] * 4, [(48, 48)] * 4)
    first, second = np.array([0.1, 0.3, 0.2, 0.0]), np.array([0.2, 0.3, np.inf, 0.0])
    other = np.array([[0.5, 0, 0, 1], [-np.pi, 0, 0, 1], [np.nan] * 4, [0, 0, 0, 2]])
    poses = pf.Projection(
        full.parameters,
        first,
        np.full(4, "converged"),
        pf.Similarity().parameters.names,
        np.full(4, 2.0),
        np.zeros(4),
        other,
        second,
    )
    columns = pose_columns(full, poses)
    np.testing.assert_allclose(columns["confidence"], [0.75, 0, 1, 0])
    angles = columns["second_angle_deg"]
    np.testing.assert_allclose(angles, [-np.rad2deg(0.5), 180, np.nan, 0], atol=1e-9)
    assert pose_table(["a"] * 4, ["b"] * 4, columns).splitlines()[3].startswith("a,b,0,0,0,1,1,0,")
    assert "scale_x" not in columns  # one scale says it
