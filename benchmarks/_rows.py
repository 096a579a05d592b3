"""Tables whose rows are measured in processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import jax
from _timing import call_time, machine, verdict


@cache
def start_up() -> float:
    """Seconds that the device took to start; call it before anything else needs the device."""
    return call_time(jax.devices)


def on_gpu() -> bool:
    """Tell whether JAX works on a GPU."""
    return jax.default_backend() == "gpu"


def about(more: str = "") -> None:
    """Hand the head of the table to the parent process."""
    kind = jax.devices()[0].device_kind
    text = f"{machine()}, JAX {jax.__version__} on {jax.default_backend()} ({kind})"
    print("ABOUT " + json.dumps({"text": text + more, "gpu": on_gpu()}), flush=True)


def row(what: str, figure: str, bar: str = "", passed: bool | None = None, note: str = "") -> None:
    """Hand one line of the table to the parent process."""
    line = {"what": what, "figure": figure, "bar": bar, "passed": passed, "note": note}
    print("ROW " + json.dumps(line), flush=True)


def at_least(what: str, value: float, bar: float, form: str = "{:,.0f}", note: str = "") -> None:
    """Report a figure that should not be below its bar, which is one for GPUs."""
    passed = bool(value >= bar) if on_gpu() else None
    row(what, form.format(value), "≥ " + form.format(bar), passed, note)


def at_most(what: str, seconds: float, bar: float, note: str = "") -> None:
    """Report seconds that should not be above their bar, which is one for GPUs."""
    passed = seconds <= bar if on_gpu() else None
    row(what, f"{seconds:.2f} s", f"≤ {bar:g} s", passed, note)


class Table:
    """Prints rows as they come and remembers whether a bar was missed."""

    def __init__(self):
        self.about = ""
        self.gpu = self.missed = False

    def header(self, text: str, gpu: bool) -> None:
        """Say where what follows was measured, once."""
        self.gpu |= gpu
        if text != self.about:
            print(f"\n{text}\n{'':<60}{'measured':>12}{'bar':>14}")
        self.about = text

    def row(self, what: str, figure: str, bar: str, passed: bool | None, note: str) -> None:
        """Print one line."""
        self.missed |= passed is False
        word = "" if passed is None else verdict(passed)
        print(f"{what:<60}{figure:>12}{bar:>14}  {word:<4}  {note}".rstrip(), flush=True)

    def run(self, script: str | Path, *arguments: str) -> None:
        """Run a script that hands over rows, in a process of its own."""
        command = [sys.executable, str(script), *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                tag, _, rest = line.partition(" ")
                if tag == "ROW":
                    self.row(**json.loads(rest))
                elif tag == "ABOUT":
                    self.header(**json.loads(rest))
                else:
                    print(line, end="")
        if process.returncode:
            what = " ".join([Path(script).name, *arguments])
            self.row(what, "broke off", "", False, f"exit status {process.returncode}")
