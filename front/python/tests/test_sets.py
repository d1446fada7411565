"""Drawing sets, testing them in batches, the acceptance plot."""

import math
import pickle
from fractions import Fraction

import pytest

import horolog as h

np = pytest.importorskip("numpy")


def test_sets_are_the_same_for_ever_and_in_parts() -> None:
    sets = h.generate(300, tasks=4, seed=5)
    for threads in (1, 2, 7):
        again = h.generate(300, tasks=4, seed=5, threads=threads)
        assert all(bytes(getattr(sets, key)) == bytes(getattr(again, key)) for key in ("wcet", "deadline", "period"))
    part = h.generate(100, tasks=4, seed=5, first=200)
    assert np.array_equal(np.asarray(part.wcet), np.asarray(sets.wcet)[200:])
    back = pickle.loads(pickle.dumps(sets))
    assert len(back) == 300 and back.wcet.tolist() == sets.wcet.tolist()
    # What a study published with this seed was drawn with.
    assert sets.wcet.tolist()[0] == [6806882, 172144729, 107688667, 5775931]


def test_utilisations_have_their_sum() -> None:
    for method in h.METHODS:
        drawn = np.asarray(h.utilisations(500, tasks=6, utilisation=1.7, method=method))
        assert drawn.shape == (500, 6)
        assert np.allclose(drawn.sum(axis=1), 1.7)
        assert (drawn >= 0).all() and ((drawn <= 1).all() or method == "uunifast")


def test_arrays_cross_without_a_copy() -> None:
    sets = h.generate(10, tasks=3)
    view = np.asarray(sets.period)
    assert view.dtype == np.uint64 and view.shape == (10, 3) and not view.flags.owndata


def demand_holds(set_: list[tuple[int, int, int]]) -> bool:
    """The processor demand criterion (Baruah, Rosier and Howell 1990), point by point."""
    if sum(Fraction(c, t) for c, _, t in set_) > 1:
        return False
    end = math.lcm(*(t for _, _, t in set_)) + max(d for _, d, _ in set_)
    return all(
        sum(max(0, (at - d) // t + 1) * c for c, d, t in set_) <= at for at in range(1, end + 1)
    )


def responses_hold(set_: list[tuple[int, int, int]]) -> bool:
    """The plain fixed point, for deadlines of at most the period."""
    order = sorted(range(len(set_)), key=lambda at: (set_[at][1], at))
    for place, at in enumerate(order):
        c, d, _ = set_[at]
        response = c
        while response <= d:
            more = c + sum(-(-response // set_[one][2]) * set_[one][0] for one in order[:place])
            if more == response:
                break
            response = more
        if response > d:
            return False
    return True


def test_verdicts_are_those_of_naive_tests() -> None:
    random = np.random.default_rng(3)
    period = random.choice([4, 5, 6, 8, 10, 12], (600, 3))
    wcet = random.integers(1, 4, (600, 3))
    deadline = np.minimum(period, wcet + random.integers(0, 9, (600, 3)))
    found = h.batch((wcet, deadline, period), h.TESTS)
    values = np.asarray(found.values)
    assert values.shape == (600, 4) and values.dtype == np.int8
    rows = [list(zip(*(part[at].tolist() for part in (wcet, deadline, period)), strict=True)) for at in range(600)]
    assert values[:, h.TESTS.index("edf-qpa")].tolist() == [int(demand_holds(row)) for row in rows]
    fixed = values[:, h.TESTS.index("fp-preemptive")]
    decided = fixed != -1
    assert decided.mean() > 0.9
    assert fixed[decided].tolist() == [int(responses_hold(row)) for row, use in zip(rows, decided, strict=True) if use]
    assert 0.1 < found.ratio("edf-qpa") < 0.9
    as_lists = h.batch([part.tolist() for part in (wcet, deadline, period)], h.TESTS)
    assert bytes(as_lists.values) == bytes(found.values)
    unsigned = h.batch([part.astype(np.uint64) for part in (wcet, deadline, period)], h.TESTS, threads=1)
    assert bytes(unsigned.values) == bytes(pickle.loads(pickle.dumps(found)).values)


GOOD = np.full((4, 2), 10)


def changed(at: tuple[int, int], value: int) -> object:
    array = GOOD.copy()
    array[at] = value
    return array


@pytest.mark.parametrize(
    ("place", "bad"),
    [
        (place, bad)
        for place in range(3)
        for bad in (
            GOOD.astype(float),
            GOOD.astype(np.int32),
            GOOD.astype(bool),
            GOOD.astype(object),
            GOOD[:, :1],
            GOOD[:3],
            GOOD.ravel(),
            GOOD.reshape(2, 2, 2),
            GOOD[:0],
            np.full((8, 2), 10)[::2],
            np.asfortranarray(GOOD),
            changed((3, 1), -1),
            changed((3, 1), 0),
            changed((0, 0), 2**60),
            np.full((4, 2), 2**64 - 1, np.uint64),
            [[1.5, 2]] * 4,
            [[math.nan, 2]] * 4,
            [[1, 2], [3]],
            [["1 ms", "2 ms"]] * 4,
            [1, 2],
            [],
            None,
            "text",
            7,
        )
    ],
)
def test_bad_arrays_are_named(place: int, bad: object) -> None:
    parts: list[object] = [GOOD, GOOD, GOOD]
    parts[place] = bad
    name = ("wcet", "deadline", "period")[place]
    with pytest.raises(h.BadInput) as caught:
        h.batch(parts)
    # Of two shapes that differ, the first says so.
    assert str(caught.value).startswith(name) or "the shape" in str(caught.value)


def test_the_set_at_fault_is_named() -> None:
    with pytest.raises(h.BadInput, match="^period of task 1 of set 3 is 0 ns"):
        h.batch((GOOD, GOOD, changed((3, 1), 0)))
    many = np.full((1_100_000, 1), 10)
    many[1_099_999] = 0
    with pytest.raises(h.BadInput, match="of set 1099999 is 0 ns"):
        h.batch((many, many, many))


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("count", -1),
        ("count", 0),
        ("count", 1.0),
        ("count", 2**39),
        ("tasks", 0),
        ("tasks", 1_001),
        ("utilisation", math.nan),
        ("utilisation", 0),
        ("utilisation", -0.5),
        ("utilisation", 10.5),
        ("utilisation", "0.5"),
        ("method", "uniform"),
        ("periods", 5),
        ("periods", "weekly"),
        ("shortest_period_ns", 0),
        ("longest_period_ns", 9_999_999),
        ("longest_period_ns", 2**63),
        ("granularity_ns", 10_000_001),
        ("deadlines", "soft"),
        ("least", 1.5),
        ("factor", math.inf),
        ("factor", 0),
        ("seed", 2**64),
        ("first", -1),
        ("threads", 2_000),
    ],
)
def test_bad_recipes_are_named(argument: str, value: object) -> None:
    recipe: dict[str, object] = {"count": 3}
    if argument == "least":
        recipe["deadlines"] = "constrained"
    if argument == "factor":
        recipe["deadlines"] = "arbitrary"
    recipe[argument] = value
    with pytest.raises(h.BadInput, match=f"^{argument}: "):
        h.generate(recipe.pop("count"), **recipe)


def test_bad_tests_are_named() -> None:
    for bad in ("edf-qpa", ["edf"], [], [3], None):
        with pytest.raises(h.BadInput, match="^tests"):
            h.batch((GOOD, GOOD, GOOD), bad)
    for bad in (None, 3, (GOOD, GOOD)):
        with pytest.raises(h.BadInput, match="^sets"):
            h.batch(bad)
    with pytest.raises(h.BadInput, match="^test: "):
        h.batch((GOOD, GOOD, GOOD)).ratio("rm-hyperbolic")


def test_acceptance_falls_and_the_exact_test_is_above_the_sufficient_ones() -> None:
    found = h.acceptance([0.5, 0.7, 0.85, 0.95], count=300, tasks=5, seed=2)
    assert found.count == 300 and found.recipe == {"seed": 2, "tasks": 5} and found.version == h.__version__
    for at in range(4):
        ratios = {test: found.ratios[test][at] for test in h.TESTS}
        assert ratios["edf-qpa"] == 1.0
        assert ratios["fp-preemptive"] >= ratios["rm-hyperbolic"] >= ratios["rm-liu-layland"]
    assert found.ratios["rm-liu-layland"] == (1.0, 1.0, 0.0, 0.0)
    assert 0 < found.ratios["fp-preemptive"][3] < 1


def test_bounds_may_differ_from_set_to_set() -> None:
    lower = [[0.1 * (row % 3), 0.0, 0.2] for row in range(40)]
    recipe: dict[str, Any] = {"tasks": 3, "utilisation": 0.9, "method": "convolutionalfixedsum", "seed": 5}
    shares = np.asarray(h.utilisations(40, lower=lower, upper=0.7, **recipe))
    assert (shares >= np.asarray(lower)).all() and (shares <= 0.7).all()
    sets = h.generate(40, lower=np.asarray(lower), upper=0.7, **recipe)
    for row in (0, 1, 2, 39):
        alone = h.generate(1, lower=lower[row], upper=0.7, first=row, **recipe)
        assert bytes(alone.wcet) == bytes(sets.wcet[row : row + 1].tobytes())
    with pytest.raises(h.BadInput, match="^lower: there are bounds of 40 sets, and 41 are drawn"):
        h.generate(41, lower=lower, **recipe)
    with pytest.raises(h.BadInput, match=r"^lower\[3\]: there are 2 bounds of 3 tasks"):
        h.generate(40, lower=[*lower[:3], [0.1, 0.2], *lower[4:]], **recipe)
    with pytest.raises(h.BadInput, match="^utilisation: set 7: "):
        h.generate(40, lower=[*lower[:7], [0.5, 0.4, 0.2], *lower[8:]], **recipe)
    with pytest.raises(h.BadInput, match=r"^lower\[1\]: give a list"):
        h.generate(2, lower=[[0.1, 0.2, 0.1], 0.3], **recipe)  # type: ignore[list-item]


def test_bounds_of_utilisations_are_kept() -> None:
    lower, upper = [0.1, 0.0, 0.25], [0.2, 1.0, 0.25]
    for method in ("convolutionalfixedsum", "dirichlet-rescale"):
        shares = np.asarray(h.utilisations(500, tasks=3, utilisation=0.9, method=method, lower=lower, upper=upper))
        assert (shares >= lower).all() and (shares <= upper).all()
        assert np.abs(shares.sum(axis=1) - 0.9).max() < 1e-14 and shares[:, 0].std() > 0.01
    sets = h.generate(200, tasks=4, utilisation=1.0, method="convolutionalfixedsum", upper=0.3)
    assert (np.asarray(sets.wcet) / np.asarray(sets.period) <= 0.3).all()
    whole = np.asarray(h.utilisations(300, tasks=20, utilisation=9.3, method="convolutionalfixedsum"))
    assert all(sum(row) == 9.3 for row in whole.tolist())
    for words, named in (
        ({"lower": -0.1}, "lower"),
        ({"upper": [1.0, 1.0]}, "upper"),
        ({"upper": [1.0, math.nan, 1.0]}, r"upper\[1\]"),
        ({"lower": 0.4}, "utilisation"),
        ({"lower": [0.5, 0.0, 0.0], "upper": 0.4}, "upper"),
        ({"lower": "0"}, "lower"),
        ({"lower": 0.1, "method": "uunifast"}, "method"),
    ):
        arguments: dict[str, object] = {"method": "convolutionalfixedsum", **words}
        with pytest.raises(h.BadInput, match=f"^{named}: "):
            h.utilisations(3, tasks=3, utilisation=0.9, **arguments)


def test_sets_and_verdicts_cross_by_the_c_data_interface() -> None:
    sets = h.generate(5, tasks=3, utilisation=0.9, seed=4)
    verdicts = h.batch(sets, ["rm-hyperbolic", "edf-qpa"])
    # No library of Arrow is needed to make the stream.
    assert type(sets.__arrow_c_stream__()).__name__ == type(verdicts.__arrow_c_stream__()).__name__ == "PyCapsule"
    pa = pytest.importorskip("pyarrow", reason="SKIPPED: pyarrow is not installed, so no streams are read")
    table = pa.table(sets)
    assert table.column_names == ["set", "task", "wcet_ns", "deadline_ns", "period_ns"]
    assert {str(kind) for kind in table.schema.types} == {"uint64"}
    assert table["set"].to_pylist() == [place // 3 for place in range(15)]
    assert table["task"].to_pylist() == [place % 3 for place in range(15)]
    for name in ("wcet", "deadline", "period"):
        view = np.asarray(getattr(sets, name))
        assert table[f"{name}_ns"].to_pylist() == view.ravel().tolist()
        # The very memory.
        assert table[f"{name}_ns"].chunk(0).buffers()[1].address == view.ctypes.data
    # Of what is no view of `bytes` there is a copy, and of nothing a table without rows.
    other = h.TaskSets(*(memoryview(bytearray(part)).cast("Q", (5, 3)) for part in map(bytes, (sets.wcet, sets.deadline, sets.period))))
    assert pa.table(other).equals(table)
    answers = {1: True, 0: False, -1: None}
    table = pa.table(verdicts)
    assert table.column_names == ["set", "rm-hyperbolic", "edf-qpa"] and table["set"].to_pylist() == list(range(5))
    for place, name in enumerate(verdicts.tests):
        assert table[name].to_pylist() == [answers[one] for one in np.asarray(verdicts.values)[:, place].tolist()]
    assert None in table["rm-hyperbolic"].to_pylist()
    del sets, verdicts
    assert table["set"].to_pylist() == list(range(5))


def test_tests_of_systems_are_told_where_they_are() -> None:
    with pytest.raises(h.BadInput, match="`fp-msrp` is not one of .*horolog.sweep"):
        h.acceptance([0.5], tests=["fp-msrp"], count=1)
    with pytest.raises(h.BadInput, match="`fp` is not one of [^:]*rm-hyperbolic$"):
        h.acceptance([0.5], tests=["fp"], count=1)


def test_numbers_of_sets_end_with_64_bits() -> None:
    h.generate(1, tasks=2, first=2**64 - 1)
    for draw in (
        lambda first: h.generate(3, tasks=2, first=first),
        lambda first: h.generate_systems({"tasks": 3, "utilisation": 0.5}, "fp-non-preemptive", 3, first=first),
    ):
        draw(2**64 - 3)
        with pytest.raises(h.BadInput, match="^first: "):
            draw(2**64 - 2)


def test_arguments_are_called_as_they_are_here() -> None:
    with pytest.raises(h.BadInput, match="^longest_period_ns: 5 ns"):
        h.generate(1, longest_period_ns=5)
    with pytest.raises(h.BadInput, match="^granularity_ns: "):
        h.generate(1, granularity_ns=20_000_000)
    with pytest.raises(h.BadInput, match="^lower: "):
        h.generate(1, tasks=2, utilisation=1.0, method="convolutionalfixedsum", lower=np.array("x"))
    # A number in an array without dimensions is one number.
    h.generate(1, tasks=2, utilisation=1.0, method="convolutionalfixedsum", lower=np.array(0.1))
    # Three times 0.1 is above 0.3 by rounding alone.
    drawn = h.utilisations(1, tasks=3, utilisation=0.3, method="convolutionalfixedsum", lower=0.1)
    assert np.allclose(np.asarray(drawn), 0.1)
