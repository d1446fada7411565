"""horolog's generators beside those of their authors and of SimSo (PyPI: convolutionalfixedsum, drs, simso).

Random vectors cannot be compared one by one. Each pair is compared by the two-sample test of Kolmogorov and Smirnov on every
marginal, on the largest and the least share and on the sum of the first two; the least p-value is multiplied by the number of tests
(Bonferroni). Sums and bounds are looked at vector by vector.
"""

from __future__ import annotations

import argparse
import random
import time
import warnings
from collections.abc import Callable

warnings.simplefilter("ignore")  # drs announces that it is deprecated, SimPy 2 is older than the interpreter

import convolutionalfixedsum as cfs  # noqa: E402
import drs  # noqa: E402
import horolog  # noqa: E402
import numpy as np  # noqa: E402
from common import Tally, head  # noqa: E402
from scipy.stats import ks_2samp  # noqa: E402
from simso.generator import task_generator as simso  # noqa: E402

LEAST_P = 1e-4
Vectors = np.ndarray
UPPER = {3: [0.7, 0.4, 0.1], 4: [0.9, 0.5, 0.5, 0.2], 5: [1.0, 0.6, 0.3, 0.3, 0.1]}
LOWER = {3: [0.1, 0.0, 0.02], 4: [0.2, 0.05, 0.0, 0.1], 5: [0.05, 0.1, 0.0, 0.2, 0.01]}


def one_by_one(draw: Callable[[], object]) -> Callable[[int], Vectors]:
    return lambda count: np.array([draw() for _ in range(count)], dtype=float)


def statistics(vectors: Vectors) -> list[Vectors]:
    columns = [vectors[:, place] for place in range(vectors.shape[1])]
    return [*columns, vectors.max(axis=1), vectors.min(axis=1), vectors[:, 0] + vectors[:, 1]]


def least_p(ours: Vectors, theirs: Vectors) -> float:
    """The least p-value after Bonferroni's correction."""
    values = [ks_2samp(one, other).pvalue for one, other in zip(statistics(ours), statistics(theirs), strict=True)]
    return min(1.0, min(values) * len(values))


def outside(vectors: Vectors, total: float, lower: list[float] | None, upper: list[float] | None) -> int:
    """Vectors with another sum (beyond 10^-9) or a share beyond its bounds (by more than 10^-12)."""
    least = np.zeros(vectors.shape[1]) if lower is None else np.array(lower)
    most = np.ones(vectors.shape[1]) if upper is None else np.array(upper)
    wrong = (abs(vectors.sum(axis=1) - total) > 1e-9) | (vectors < least - 1e-12).any(axis=1)
    return int((wrong | (vectors > most + 1e-12).any(axis=1)).sum())


def rejected(count: int, total: float, lower: list[float] | None, upper: list[float], dice: np.random.Generator) -> Vectors:
    """A third witness: uniform vectors with the sum, drawn again until they keep their bounds."""
    least = np.zeros(len(upper)) if lower is None else np.array(lower)
    kept: list[Vectors] = []
    while sum(map(len, kept)) < count:
        drawn = least + dice.dirichlet(np.ones(len(upper)), 100_000) * (total - least.sum())
        kept.append(drawn[(drawn <= upper).all(axis=1)])
    return np.concatenate(kept)[:count]


def compare(
    name: str, ours: Vectors, theirs: Vectors, total: float, bounds: tuple, tally: Tally, *, uniform: Vectors | None = None
) -> None:
    p, (lower, upper) = least_p(ours, theirs), bounds
    wrong = outside(ours, total, lower, upper), outside(theirs, total, lower, upper)
    print(f"{name}: p = {p:.3g}; beyond sum or bounds: {wrong[0]} of {len(ours)} here, {wrong[1]} of {len(theirs)} there")
    witness = (1.0, 1.0) if uniform is None else (least_p(ours, uniform), least_p(theirs, uniform))
    if uniform is not None:
        print(f"  against vectors that were drawn again until they fit: p = {witness[0]:.3g} here, {witness[1]:.3g} there")
    if wrong[0]:
        tally.differ(name, f"{wrong[0]} vectors of ours are wrong")
    if p > LEAST_P:
        tally.same("distributions")
    elif name.endswith("cfsa") and lower is not None and witness[0] > LEAST_P >= witness[1]:
        tally.explain("distributions", "rule 11: cfsa is wrong with lower bounds, and a third witness agrees with horolog", name)
    else:
        tally.differ(name, f"p = {p:.3g}")


def timed(name: str, draw: Callable[[int], Vectors], count: int) -> Vectors:
    begin = time.perf_counter()
    vectors = draw(count)
    print(f"  {name}: {count / (time.perf_counter() - begin):.0f} vectors/s")
    return vectors


def with_bounds(count: int, seed: int, tally: Tally) -> None:
    """Uniform within bounds: the authors' analytical and numerical forms; then the form that is not uniform."""
    dice = np.random.default_rng(seed)
    for tasks, upper in UPPER.items():
        lower = LOWER[tasks]
        for total in (0.8, 1.0):
            for name, low in (("upper bounds", None), ("both bounds", lower)):
                given = {"tasks": tasks, "utilisation": total, "lower": low, "upper": upper}
                ours = np.asarray(horolog.utilisations(10 * count, seed=seed, method="convolutionalfixedsum", **given))
                rescaled = np.asarray(horolog.utilisations(10 * count, seed=seed, method="dirichlet-rescale", **given))
                words = {"lower_constraints": low, "upper_constraints": upper}
                exact = timed("cfsa", one_by_one(lambda w=words, t=total, n=tasks: cfs.cfsa(n, t, **w)), 5 * count)
                numeric = timed("cfsn", one_by_one(lambda w=words, t=total, n=tasks: cfs.cfsn(n, t, **w)), count // 5)
                old = timed("drs", one_by_one(lambda lo=low, hi=upper, t=total, n=tasks: drs.drs(n, t, hi, lo)), 5 * count)
                title = f"n = {tasks}, U = {total}, {name}"
                bounds, uniform = (low, upper), rejected(10 * count, total, low, upper, dice)
                compare(f"convolutionalfixedsum, {title}, cfsa", ours, exact, total, bounds, tally, uniform=uniform)
                compare(f"convolutionalfixedsum, {title}, cfsn", ours, numeric, total, bounds, tally)
                compare(f"dirichlet-rescale, {title}, drs", rescaled, old, total, bounds, tally, uniform=uniform)


def without_bounds(count: int, seed: int, tally: Tally) -> None:
    """SimSo's RandFixedSum and UUniFast-Discard."""
    for tasks, total in ((3, 0.9), (5, 1.0), (5, 2.4), (10, 3.0), (20, 0.95)):
        for method, theirs in (
            ("randfixedsum", simso.StaffordRandFixedSum),
            ("uunifast-discard", simso.UUniFastDiscard),
        ):
            ours = np.asarray(horolog.utilisations(count, tasks=tasks, utilisation=total, method=method, seed=seed))
            drawn = np.array(theirs(tasks, total, count))
            compare(f"{method}, n = {tasks}, U = {total}, SimSo", ours, drawn, total, (None, None), tally)


def periods(count: int, seed: int, tally: Tally) -> None:
    """Log-uniform periods, SimSo's rounded to whole milliseconds as ours are cut to them."""
    sets = horolog.generate(count, tasks=2, utilisation=0.5, granularity_ns=1_000, seed=seed)
    ours = np.asarray(sets.period).ravel() / 1e6
    theirs = np.array(simso.gen_periods_loguniform(2, count, 10.0, 1000.0, False)).ravel()
    p = ks_2samp(ours, theirs).pvalue
    print(f"log-uniform periods, SimSo: p = {p:.3g}")
    if p > LEAST_P:
        tally.same("distributions")
    else:
        tally.differ("periods", f"p = {p:.3g}")


def refusals(tally: Tally) -> None:
    """Sums that no vector has."""
    for tasks, total, lower, upper in ((3, 1.5, None, [0.4, 0.4, 0.4]), (3, 0.2, [0.1, 0.1, 0.1], None)):
        answers = []
        for draw in (
            lambda n=tasks, t=total, lo=lower, hi=upper: cfs.cfsa(n, t, lower_constraints=lo, upper_constraints=hi),
            lambda n=tasks, t=total, lo=lower, hi=upper: horolog.utilisations(
                1, tasks=n, utilisation=t, method="convolutionalfixedsum", lower=lo, upper=hi
            ),
        ):
            try:
                draw()
                answers.append("drawn")
            except Exception as error:  # each has exceptions of its own
                answers.append(type(error).__name__)
        print(f"n = {tasks}, U = {total}, bounds {lower} {upper}: {answers[0]} there, {answers[1]} here")
        if answers == ["drawn", "BadInput"]:
            tally.explain("refusals", "rule 11: cfsa draws where the lower bounds are above the sum", f"{total} {lower}")
        elif "drawn" in answers:
            tally.differ("refusal", f"{total} {lower} {upper}: {answers}")
        else:
            tally.same("refusals")


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--sets", type=int, default=600, help="vectors of each pair; five times as many of the faster ones, a fifth of cfsn")
    words.add_argument("--seed", type=int, default=1)
    words = words.parse_args()
    head("convolutionalfixedsum", "drs", "simso")
    random.seed(words.seed)
    np.random.seed(words.seed)
    tally = Tally()
    with_bounds(words.sets, words.seed, tally)
    without_bounds(words.sets, words.seed, tally)
    periods(words.sets, words.seed, tally)
    refusals(tally)
    return tally.close()


if __name__ == "__main__":
    raise SystemExit(main())
