"""Tasks on blocks, done by this process: reading, transfer and work overlap."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Protocol, runtime_checkable

from patternfold.learning.stream.stack import Stack
from patternfold.learning.stream.times import timed

HANDS = 2
"""Blocks that are worked on at a time: while the device computes on one, the next is read and sent
to it."""

Span = tuple[int, int]
Task = Callable[..., Any]
"""What is done to a block: ``task(images, *rows)``, where the rows are those of the images."""


@runtime_checkable
class Place(Protocol):
    """Where tasks are run."""

    def run(
        self, task: Task, stack: Stack, spans: Sequence[Span], *per_image: Any
    ) -> Iterator[Any]:
        """Yield the result of each block, in their order."""
        ...


class Here:
    """The process itself, with all its devices: a block's chunks are spread over them."""

    def run(
        self, task: Task, stack: Stack, spans: Sequence[Span], *per_image: Any
    ) -> Iterator[Any]:
        """Yield the result of each block, in their order; few blocks are in memory at a time."""
        pool = ThreadPoolExecutor(HANDS, "patternfold-block")
        ahead: deque[Future[Any]] = deque()
        try:
            for k, span in enumerate(spans):
                ahead.append(pool.submit(done, task, stack, span, *rows_of(span, per_image)))
                # The first block alone: what it compiles serves the others.
                while len(ahead) > (0 if k == 0 else HANDS - 1):
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def rows_of(span: Span, per_image: Sequence[Any]) -> list[Any]:
    """Rows of a block of arrays with one row for each image; None is None."""
    begin, end = span
    return [None if rows is None else rows[begin:end] for rows in per_image]


def done(task: Task, stack: Stack, span: Span, *rows: Any) -> Any:
    """Read a block and do the task."""
    with timed("read"):
        images = stack.images(*span)
    return task(images, *rows)
