"""Tasks on blocks, done by the workers of a Dask cluster: images stay there, sums travel.

Blocks and the order in which their sums are added do not depend on the workers, nor do the results.
A block whose worker is lost is done by another.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any

from patternfold.learning.stream.here import Here, Place, Span, Task, done, rows_of
from patternfold.learning.stream.stack import Stack, checked

AHEAD = 2
"""Blocks that are handed out for each thread of the workers: one to do, and one to go on with."""

RETRIES = 3
"""Times that a block is tried again where reading it fails on the way, as on a network drive."""


class ClusterError(ConnectionError):
    """The cluster is gone; the message says what was kept and the way on."""


class OnDask:
    """The workers of a Dask client."""

    def __init__(self, client: Any):
        self.client = client

    def run(
        self, task: Task, stack: Stack, spans: Sequence[Span], *per_image: Any
    ) -> Iterator[Any]:
        """Yield the result of each block, in their order."""
        ahead: deque[Any] = deque()
        at_once, finished = AHEAD * self._threads(len(spans)), 0
        try:
            for span in spans:
                self._require_running(finished, len(spans))
                ahead.append(self._submit(task, stack, span, rows_of(span, per_image)))
                while len(ahead) >= at_once:
                    yield self._result(ahead.popleft(), finished, len(spans))
                    finished += 1
            while ahead:
                yield self._result(ahead.popleft(), finished, len(spans))
                finished += 1
        finally:
            if ahead and self.client.status == "running":
                self.client.cancel(list(ahead))

    def _threads(self, total: int) -> int:
        self._require_running(0, total)
        return max(1, sum(self.client.nthreads().values()))

    def _require_running(self, finished: int, total: int) -> None:
        if self.client.status != "running":
            raise self._gone(finished, total, f"its client is {self.client.status}")

    def _submit(self, task: Task, stack: Stack, span: Span, rows: Sequence[Any]) -> Any:
        how = {"pure": False, "retries": RETRIES}
        lazy = stack.lazy(*span)
        if lazy is None:
            return self.client.submit(done, task, stack, span, *rows, **how)
        # The array's own blocks stay on the workers that have them.
        images = self.client.compute(lazy)
        about = (stack.name, stack.shape, span)
        return self.client.submit(_done_with, task, about, images, *rows, **how)

    def _result(self, future: Any, finished: int, total: int) -> Any:
        from distributed.comm.core import CommClosedError

        try:
            return future.result()
        except (CancelledError, CommClosedError, TimeoutError) as error:
            raise self._gone(finished, total, str(error)) from error

    def _gone(self, finished: int, total: int, reason: str) -> ClusterError:
        return ClusterError(
            f"The Dask cluster at {self._address()} is gone after {finished} of {total} blocks "
            f"({reason}). Start it again and run the same once more: with a checkpoint, or with "
            "resume for results in a file, it goes on from there."
        )

    def _address(self) -> str:
        scheduler = getattr(self.client, "scheduler", None)
        return str(getattr(scheduler, "address", None) or "its address")


def _done_with(task: Task, about: tuple[str, Any, Span], images: Any, *rows: Any) -> Any:
    """Do the task on images that Dask has computed."""
    return task(checked(*about, images), *rows)


def active_place() -> Place:
    """The workers of the active Dask client, if there is one, or this process."""
    if "distributed" not in sys.modules:
        return Here()
    from distributed import default_client

    try:
        return OnDask(default_client())
    except ValueError:  # no client
        return Here()
