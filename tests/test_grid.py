import numpy as np
import pytest

from patternfold import Grid
from patternfold.model.grid import as_grid


def test_square_grid_has_pixel_centres_inside_the_unit_window():
    grid = Grid(2, 2)
    np.testing.assert_array_equal(grid.x, [-0.5, 0.5, -0.5, 0.5])
    np.testing.assert_array_equal(grid.y, [-0.5, -0.5, 0.5, 0.5])


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (1, 4), (4, 1), (7, 7)])
def test_longer_side_spans_minus_one_to_one_and_pixels_are_square(shape):
    grid = Grid(*shape)
    left, right, top, bottom = grid.window
    assert max(right - left, bottom - top) == 2
    assert (right - left) / (bottom - top) == pytest.approx(shape[1] / shape[0])  # one division
    for centres, low, high in [(grid.columns, left, right), (grid.rows, top, bottom)]:
        # Centres lie half a pixel inside both borders; a sum of few numbers of size 1.
        np.testing.assert_allclose(centres[[0, -1]], [low + grid.pixel / 2, high - grid.pixel / 2])
        np.testing.assert_allclose(np.diff(centres), grid.pixel)


def test_rows_come_first_and_y_points_down():
    grid = Grid(3, 4)
    x, y = grid.x.reshape(grid.shape), grid.y.reshape(grid.shape)
    assert (np.diff(x, axis=1) > 0).all()
    assert (np.diff(x, axis=0) == 0).all()
    assert (np.diff(y, axis=0) > 0).all()
    assert (np.diff(y, axis=1) == 0).all()
    assert grid.n_pixels == 12 == len(grid.x) == len(grid.y)


def test_single_pixel_lies_at_the_origin():
    grid = Grid(1, 1)
    assert (grid.x, grid.y, grid.pixel) == (0, 0, 2)


def test_grids_of_the_same_shape_are_equal_and_hash_alike():
    assert Grid(3, 4) == Grid(3, 4) != Grid(4, 3)
    assert hash(Grid(3, 4)) == hash(Grid(3, 4))


def test_as_grid_takes_a_shape_or_a_grid():
    grid = Grid(3, 4)
    assert as_grid(grid) is grid
    assert as_grid((3, 4)) == grid


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("shape", [(0, 3), (3, -1), (3, 2.5)])
def test_empty_and_fractional_grids_are_refused(shape):
    with pytest.raises(ValueError, match=r"(height=0|width=-1|width=2.5) must be a positive int"):
        Grid(*shape)


@pytest.mark.usefixtures("as_users_run")
@pytest.mark.parametrize("shape", [(3,), (1, 2, 3), 28])
def test_shapes_that_are_no_pair_are_refused(shape):
    with pytest.raises(ValueError, match=r"shape=.* must be a pair \(height, width\)"):
        as_grid(shape)
