"""What the comparisons share: sets that horolog draws, and the tally of what agrees and what does not."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.metadata import version

import horolog

UTILISATIONS = (0.5, 0.7, 0.85, 0.95, 1.0)


@dataclass(frozen=True)
class Drawn:
    """A task of a drawn set; times in units."""

    wcet: int
    deadline: int
    period: int


@dataclass(frozen=True)
class Shape:
    """A recipe of sets whose times are small whole numbers, so that many events fall together."""

    name: str
    tasks: int
    periods: str
    shortest: int
    longest: int
    deadlines: str


SHAPES = (
    Shape("three tasks, periods 4 to 12", 3, "log-uniform", 4, 12, "constrained"),
    Shape("four tasks, periods 4 to 40", 4, "log-uniform", 4, 40, "implicit"),
    Shape("five tasks, harmonic periods 8 to 64", 5, "harmonic", 8, 64, "constrained"),
    Shape("four tasks, periods 6 to 30, deadlines up to twice the period", 4, "log-uniform", 6, 30, "arbitrary"),
)


def draw(shape: Shape, count: int, seed: int) -> Iterator[list[Drawn]]:
    """``count`` sets, as many of each utilisation."""
    each = max(1, count // len(UTILISATIONS))
    for place, utilisation in enumerate(UTILISATIONS):
        sets = horolog.generate(
            each,
            tasks=shape.tasks,
            utilisation=utilisation,
            periods=shape.periods,
            shortest_period_ns=shape.shortest,
            longest_period_ns=shape.longest,
            deadlines=shape.deadlines,
            seed=seed,
            first=place * each,
        )
        columns = (sets.wcet.tolist(), sets.deadline.tolist(), sets.period.tolist())
        for rows in zip(*columns, strict=True):
            yield [Drawn(*values) for values in zip(*rows, strict=True)]


def ranks(tasks: list[Drawn]) -> list[int]:
    """Deadline-monotonic priorities, all different: the larger, the more important."""
    order = sorted(range(len(tasks)), key=lambda place: (-tasks[place].deadline, -place))
    return [order.index(place) + 1 for place in range(len(tasks))]


@dataclass
class Tally:
    """Counts by what was compared; differences that a rule explains are counted by the rule, all others are shown."""

    agree: Counter[str] = field(default_factory=Counter)
    explained: Counter[tuple[str, str]] = field(default_factory=Counter)
    shown: dict[tuple[str, str], str] = field(default_factory=dict)
    unexplained: list[str] = field(default_factory=list)

    def same(self, what: str, count: int = 1) -> None:
        self.agree[what] += count

    def explain(self, what: str, rule: str, example: object) -> None:
        """A difference that a rule on docs/about/peers.md explains; the first example of each is shown."""
        self.explained[what, rule] += 1
        self.shown.setdefault((what, rule), str(example))

    def differ(self, what: str, example: object) -> None:
        self.unexplained.append(f"{what}: {example}")

    def close(self) -> int:
        """Prints everything; the exit status is 1 where something is not explained."""
        for what in sorted({*self.agree, *(key[0] for key in self.explained)}):
            print(f"{what}: {self.agree[what]} equal")
            for (other, rule), count in sorted(self.explained.items()):
                if other == what:
                    print(f"  {count} differ, {rule}")
                    print(f"    first: {self.shown[other, rule]}")
        for line in self.unexplained[:20]:
            print(f"NOT EXPLAINED: {line}")
        equal, explained = sum(self.agree.values()), sum(self.explained.values())
        print(f"total: {equal} equal, {explained} explained, {len(self.unexplained)} not explained")
        return 1 if self.unexplained else 0


def head(*packages: str) -> None:
    """The versions that were compared."""
    named = ", ".join(f"{name} {version(name)}" for name in ("horolog", *packages))
    print(f"{named}, Python {sys.version.split()[0]}")
