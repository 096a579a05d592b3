"""Dask clusters for commands: one that runs, or workers of this machine."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from patternfold.cli.console import Console, Failure

WAIT = 30
"""Seconds that a scheduler may take to answer."""


def add_cluster(parser: argparse._ActionsContainer) -> None:
    """Let a command work on a cluster."""
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="do it on a Dask cluster, for example tcp://host:8786"
    )
    parser.add_argument(
        "--workers", type=int, metavar="N", help="do it with so many processes of this machine"
    )


@contextmanager
def cluster(options: argparse.Namespace, console: Console) -> Iterator[None]:
    """Work on the cluster that the options name, if they do, within the block."""
    if options.cluster is None and options.workers is None:
        yield
        return
    if options.workers is not None and options.workers < 1:
        raise Failure(f"--workers {options.workers} must be at least 1.")
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise Failure("Clusters need Dask: pip install 'patternfold[cluster]'.") from error
    with ExitStack() as stack:
        address = options.cluster
        if address is None:
            local = LocalCluster(n_workers=options.workers, threads_per_worker=1)
            address = stack.enter_context(local)
        try:
            client = stack.enter_context(Client(address, timeout=WAIT))
        except OSError as error:
            raise Failure(
                f"--cluster {options.cluster}: no scheduler answers there. Start one with "
                f"'dask scheduler', or leave the option out ({error})."
            ) from error
        console.say(f"Dask dashboard: {client.dashboard_link}")
        yield
