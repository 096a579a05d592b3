import numpy as np
import pytest

from patternfold.numerics import chunks
from patternfold.numerics.chunks import chunk_rows, map_chunks, padded_rows


def test_chunks_are_powers_of_two_within_the_memory_given(monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 1000)
    assert [chunk_rows(n) for n in (1, 100, 300, 999, 1000, 5000)] == [512, 8, 2, 1, 1, 1]


def test_row_counts_are_padded_to_few_sizes():
    sizes = [padded_rows(n) for n in range(1, 1001)]
    assert all(n <= size < max(2, 1.5 * n) for n, size in enumerate(sizes, start=1))
    assert sorted(set(sizes))[:8] == [1, 2, 3, 4, 6, 8, 12, 16]
    assert len(set(sizes)) <= 20  # two for each doubling


@pytest.mark.parametrize("n_rows", [0, 1, 2, 5, 8, 13])
def test_rows_come_back_whole_and_in_order(monkeypatch, n_rows):
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 40)  # chunks of 4 rows of 10 bytes
    seen = []

    def function(a, b):
        seen.append(len(a))
        return a + b, b.sum(axis=1)

    a, b = np.arange(2.0 * n_rows).reshape(n_rows, 2), np.ones((n_rows, 2), np.float32)
    total, sums = map_chunks(function, (a, b), bytes_per_row=10)
    np.testing.assert_array_equal(total, a + 1)
    np.testing.assert_array_equal(sums, np.full(n_rows, 2))
    assert (total.shape, total.dtype) == ((n_rows, 2), np.float64)
    assert (sums.shape, sums.dtype) == ((n_rows,), np.float32)
    assert len(set(seen)) == 1 <= seen[0] <= 4  # one shape to compile, within the memory given
    assert len(seen) == max(1, -(-n_rows // 4))


def test_a_single_output_needs_no_tuple():
    (doubled,) = map_chunks(lambda a: 2 * a, (np.arange(3.0),), bytes_per_row=1)
    np.testing.assert_array_equal(doubled, [0, 2, 4])
