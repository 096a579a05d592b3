"""More images than memory: learning and projecting from a zarr stack, each part in its own process.

python benchmarks/scaling.py                     what suits the machine: stack, and on CPUs the rest
python benchmarks/scaling.py --images 20000 stack   another number of images
parts: stack (10⁶ images on a GPU, 100,000 otherwise), digits (20,000), workers

`stack` draws 40×40 images in uint8, learns PATS(20) from them out of core, and writes the poses of
all; on a CPU it learns 8 atoms. Memory is the peak of the resident set, less that of the same with
4,096 images, which code and libraries take. `digits` compares errors of out-of-core and online
learning with those in memory. `workers` runs one pass on Dask workers of one core each, on CPUs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import _digits
import numpy as np
from _rows import Table, about, on_gpu, row, start_up
from _timing import add_parts, call_time, chosen_parts, verdict
from memory import peak

import patternfold as pf
from patternfold.datasets import random_images, random_pattern
from patternfold.learning.passes import Look
from patternfold.learning.stream.cluster import active_place
from patternfold.learning.stream.learn import Source
from patternfold.learning.stream.times import seconds_spent

PARTS = ("stack", "digits", "workers")
SHAPE, STORED, DRAWN = (40, 40), 4096, 2**14
"""Of images, images in a chunk of the file, and images that are drawn at a time."""

SMALL = 4096
NOISE = 0.05
"""Standard deviation, where patterns are about 1."""

GIB = 2**30
SIMILAR = 1.01
"""Times the error in memory that is as good."""


def write_stack(path: Path, n: int, n_atoms: int = 16) -> None:
    """Draw images of one pattern with noise and write them as bytes."""
    rng = np.random.default_rng(0)
    pattern = random_pattern(n_atoms, rng)
    array = open_array(path, n)
    noise = NOISE * rng.standard_normal((DRAWN, *SHAPE), np.float32)
    scale = None
    for begin in range(0, n, DRAWN):
        count = min(DRAWN, n - begin)
        images, _ = random_images(pattern, DRAWN, rng, "similarity", shape=SHAPE)
        images = images.astype(np.float32) + noise[rng.permutation(DRAWN)]
        scale = scale or 100 / float(np.abs(images).max())
        found = np.clip(scale * images[:count] + 128, 0, 255).astype(np.uint8)
        array[begin : begin + count] = found


def open_array(path: Path, n: int) -> Any:
    """A new file of bytes."""
    if path.suffix == ".npy":
        return np.lib.format.open_memmap(path, "w+", np.uint8, (n, *SHAPE))
    import zarr

    chunks = (min(n, STORED), *SHAPE)
    return zarr.create_array(path, shape=(n, *SHAPE), chunks=chunks, dtype=np.uint8)


def ending() -> str:
    """Of the stacks: zarr where it is installed."""
    return ".zarr" if find_spec("zarr") else ".npy"


def learned(path: Path, n_atoms: int) -> Any:
    """Learn out of core, from images with an offset of their own."""
    options = {"transformation": "similarity", "offset": True, "random_state": 0}
    return pf.PATS(n_atoms, verbose=1, **options).fit(path)


def stack(n: int | None, folder: Path) -> None:
    """Learn from a stack and write the poses of all its images."""
    n = n or (10**6 if on_gpu() else 10**5)
    n_atoms = 20 if on_gpu() else 8
    small, path = folder / f"small{ending()}", folder / f"{n}{ending()}"
    first = call_time(lambda: pf.stream(learned(small, n_atoms), small, folder / "small.npy"))
    row(f"the same with {SMALL:,} images, code compiled", f"{first:.1f} s")
    before, began = peak(), time.perf_counter()
    seconds_spent(reset=True)
    model = learned(path, n_atoms)
    fit = time.perf_counter() - began
    tell_times(f"PATS({n_atoms}) on {n:,} images", n)
    began = time.perf_counter()
    pf.stream(model, path, folder / "poses.npy")
    write = time.perf_counter() - began
    tell_times(f"poses of {n:,} images", n)
    row(
        f"PATS({n_atoms}) on {n:,} images",
        f"{fit:.1f} s",
        note=f"error {model.error_path_[-1]:.5f}",
    )
    row(f"poses of {n:,} images", f"{write:.1f} s", note=f"{n / write:,.0f} images/s")
    bar = 600 if on_gpu() else None
    passed = None if bar is None else fit + write + first <= bar
    row(
        "all, with what is compiled",
        f"{fit + write + first:.0f} s",
        "≤ 600 s" if bar else "",
        passed,
    )
    total, beside = peak() / GIB, (peak() - before) / GIB
    most = 4 if on_gpu() else 2
    note = f"{total:.2f} GiB in all, with the libraries of the device"
    what = f"memory of the host beside what {SMALL:,} images take"
    row(what, f"{beside:.2f} GiB", f"≤ {most} GiB", beside <= most, note)


def draw(n: int | None, folder: Path) -> None:
    """Write the stacks, in a process whose memory does not count."""
    n = n or (10**6 if on_gpu() else 10**5)
    for name, count in (("small", min(n, SMALL)), (str(n), n)):
        path = folder / f"{name}{ending()}"
        if not path.exists():
            seconds = call_time(lambda path=path, count=count: write_stack(path, count))
            row(f"drawing and writing {count:,} images", f"{seconds:.1f} s")


def tell_times(what: str, n: int) -> None:
    """Tell where the time went; parts overlap."""
    for name, seconds in sorted(seconds_spent(reset=True).items()):
        row(f"{what}: {name}", f"{seconds:.1f} s", note="of all threads together")


def digits(n: int | None, folder: Path) -> None:
    """Compare the errors of learning in memory, out of core and in batches."""
    n = n or 20_000
    images = _digits.draw(5, n, 0).astype(np.float32)
    np.save(folder / "digits.npy", images)
    path, n_atoms = folder / "digits.npy", 12

    def error(model: Any) -> float:
        return float((model.project(path, "quick").distances.astype(float) ** 2).sum()) / energy

    energy = float((images.astype(np.float64) ** 2).sum())
    options = {"random_state": 0, "n_starts": 1, "n_exchanges": 0}
    began = time.perf_counter()
    in_memory = error(pf.PATS(n_atoms, **options).fit(images))
    seconds = time.perf_counter() - began
    row(f"PATS({n_atoms}) on {n:,} digits in memory", f"{in_memory:.5f}", note=f"{seconds:.0f} s")
    began = time.perf_counter()
    out = error(pf.PATS(n_atoms, **options).fit(pf.open_stack(path)))
    note = f"{out / in_memory - 1:+.2%}, {time.perf_counter() - began:.0f} s"
    row("out of core", f"{out:.5f}", "≤ +1 %", out <= SIMILAR * in_memory, note)
    began, model = time.perf_counter(), pf.PATS(n_atoms, **options)
    for begin in range(0, n, 1000):
        model.partial_fit(images[begin : begin + 1000])
    online = error(model)
    note = f"{online / in_memory - 1:+.2%}, {time.perf_counter() - began:.0f} s"
    row(
        "partial_fit in batches of 1,000",
        f"{online:.5f}",
        "≤ +1 %",
        online <= SIMILAR * in_memory,
        note,
    )


def pin(core: int) -> None:
    """Keep a process, with all its threads, on one core."""
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), {core})


def separate_cores() -> list[int]:
    """One of the threads of each core that may be used: two of one core are not two cores."""
    found: dict[str, int] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        file = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        found.setdefault(file.read_text() if file.exists() else str(cpu), cpu)
    return list(found.values())


def workers(n: int | None, folder: Path) -> None:
    """One pass of learning over all images by one, two and four workers, of one core each."""
    import distributed

    n = n or 32_768
    path = folder / f"workers{ending()}"
    write_stack(path, n, 8)
    stack = pf.open_stack(path)
    model = pf.PATS(4, transformation="similarity", offset=True, n_starts=1, n_exchanges=0)
    model.fit(np.asarray(stack.images(0, 256)))
    cores = separate_cores()
    row("cores", str(len(cores)), note="one for each worker, another for scheduler and client")
    rates, found = {}, []
    for count in (1, 2, 4):
        cluster = distributed.LocalCluster(
            n_workers=count, threads_per_worker=1, dashboard_address=None
        )
        with cluster, distributed.Client(cluster) as client:
            for k, address in enumerate(client.scheduler_info(n_workers=-1)["workers"]):
                client.run(pin, cores[k % len(cores)], workers=[address])
            if len(cores) > count:
                pin(cores[-1])
            one_pass(model, stack)  # compiles
            client.run(seconds_spent, reset=True)
            began = time.perf_counter()
            found.append(one_pass(model, stack))
            seconds = time.perf_counter() - began
            rates[count] = n / seconds
            tell_workers(count, seconds, client.run(seconds_spent).values())
    same = all(np.array_equal(one.lam, found[0].lam) for one in found)
    same &= all(np.array_equal(one.sums.matrix, found[0].sums.matrix) for one in found)
    row("λ and sums of 1, 2 and 4 workers", "identical" if same else "differ", "identical", same)
    for count in (2, 4):
        efficiency = rates[count] / (count * rates[1])
        bar, passed = ("≥ 90 %", efficiency >= 0.9) if count == 2 else ("", None)
        row(f"efficiency of {count} workers", f"{efficiency:.0%}", bar, passed)


def one_pass(model: Any, stack: Any) -> Any:
    """λ of all images, and the equations of the atoms, by the active client's workers."""
    source = Source(stack, model._model(), np.ones(len(stack)), place=active_place())
    source = replace(source, model=replace(source.model, block=stack.block))
    return source.seen(Look(model.pattern_), None, lambda done, rate: None)


def tell_workers(count: int, seconds: float, spent: Any) -> None:
    """Tell how long a pass took, and what the workers did meanwhile."""
    spent = list(spent)
    names = sorted({name for own in spent for name in own})
    parts = [f"{name} {sum(own.get(name, 0.0) for own in spent) / count:.2f} s" for name in names]
    note = f"{', '.join(parts)} of a worker's time"
    row(f"a pass by {count} worker{'s' if count > 1 else ''}", f"{seconds:.2f} s", note=note)


def run_part(name: str, n: int | None, folder: Path) -> None:
    """Measure one part in this process."""
    start_up()
    about()
    {"draw": draw, "stack": stack, "digits": digits, "workers": workers}[name](n, folder)


def main() -> int:
    """Run the chosen parts; return 1 if a bar is missed."""
    parser = argparse.ArgumentParser(description="More images than memory")
    add_parts(parser, PARTS)
    parser.add_argument("--images", type=int, help="how many")
    parser.add_argument("--folder", type=Path, help="where stacks are written, and kept")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if arguments.part:
            run_part(arguments.part, arguments.images, folder)
            return 0
        table = Table()
        more = ["--folder", str(folder)]
        more += ["--images", str(arguments.images)] if arguments.images else []
        for part in chosen_parts(parser, arguments, PARTS):
            if part == "stack":
                table.run(__file__, "--part", "draw", *more)
            if part == "workers":  # of one core each: the GPU, if there is one, takes no part
                os.environ["JAX_PLATFORMS"] = "cpu"
            table.run(__file__, "--part", part, *more)
    print(f"\n{verdict(not table.missed)}")
    return int(table.missed)


if __name__ == "__main__":
    sys.exit(main())
