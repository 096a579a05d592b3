"""What came of many cases, of one process or several, and the line of it for a table."""

from __future__ import annotations

import json
import resource
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Account:
    """Cases, outcomes, findings, time and memory."""

    cases: int = 0
    seconds: float = 0.0
    modes: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, -1)
    """Seconds, and the case."""
    peak: float = 0.0
    """Largest resident set, in GB, libraries included."""
    growth: float = 0.0
    """What the cases added to the resident set, in GB."""

    def add(self, other: Account) -> None:
        """Take in another process that ran at the same time."""
        self.cases += other.cases
        self.seconds = max(self.seconds, other.seconds)
        self.modes += Counter(other.modes)
        self.outcomes += Counter(other.outcomes)
        self.findings += other.findings
        self.slowest = max(tuple(self.slowest), tuple(other.slowest))
        self.peak, self.growth = max(self.peak, other.peak), max(self.growth, other.growth)

    def save(self, path: Path) -> None:
        """Write for another process."""
        path.write_text(json.dumps(vars(self)))

    @staticmethod
    def read(path: Path) -> Account:
        """Read what another process has written."""
        values = json.loads(path.read_text())
        values["modes"], values["outcomes"] = Counter(values["modes"]), Counter(values["outcomes"])
        return Account(**values)

    def tell(self, name: str, seed: int, processes: int = 1) -> None:
        """Print all, and a line for the table of docs/reliability.md."""
        rate = self.cases / max(self.seconds, 1e-9)
        print(f"cases: {self.cases}, seed {seed}, {rate:.0f} a second, {processes} processes")
        print("modes: " + ", ".join(f"{n} {word}" for word, n in self.modes.most_common()))
        print("outcomes: " + ", ".join(f"{n} {word}" for word, n in self.outcomes.most_common()))
        print(f"peak memory: {self.peak:.2f} GB, of which the cases took {self.growth:.2f} GB")
        print(f"slowest: {self.slowest[0]:.2f} s, case {self.slowest[1]}")
        print(f"findings: {len(self.findings)}")
        print("\n".join(self.findings[:20]))
        print(
            f"| `{name}`, seed {seed} | {self.cases:,} cases | {len(self.findings)} | "
            f"{self.slowest[0]:.2f} s | {self.peak * 1e3:.0f} MB, {self.growth * 1e3:.0f} MB above "
            "the libraries |",
            flush=True,
        )


def memory() -> tuple[float, float]:
    """Resident set of this process now, and the largest so far, in GB.

    On Linux `ru_maxrss` would begin with that of the parent process.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        return most, most
    rows = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
    now, most = (int(rows[key].split()[0]) / 1e6 for key in ("VmRSS", "VmHWM"))
    return now, most
