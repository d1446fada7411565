"""The pytest plugin, in runs of pytest of its own."""

import pytest

HEAD = """
import horolog as h

def system(wcet):
    return h.System(system={"name": "robot"}, task=[
        {"name": "control", "period": "10 ms", "wcet": "2 ms", "priority": 90},
        {"name": "camera", "period": "40 ms", "deadline": "20 ms", "wcet": wcet, "priority": 50},
    ])
"""
UNDECIDED = """
def test_undecided(horolog):
    horolog.assert_meets(system("14 ms").analyze("none"), gate={"proof", "model"})
"""


def test_yes_passes_and_no_fails_and_both_are_noted(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        HEAD
        + """
def test_yes(horolog):
    result = system("16 ms").analyze("none")
    assert horolog.assert_meets(result, gate={"proof"}) is result
    horolog.assert_meets(result)
    horolog.assert_meets(lambda: system("14 ms").simulate("1 s"), gate={"deadlines"})

def test_no(horolog):
    calls = []
    def once():
        calls.append(1)
        return system("16000001 ns").analyze("none")
    try:
        horolog.assert_meets(once, gate={"proof"})
    finally:
        assert len(calls) == 1
"""
    )
    done = pytester.runpytest_subprocess("--junitxml=junit.xml")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["*robot: no: *camera*"])
    written = (pytester.path / "junit.xml").read_text()
    assert 'name="horolog_verdict" value="robot: no"' in written


def test_undecided_fails_or_is_skipped(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(HEAD + UNDECIDED)
    pytester.runpytest_subprocess().assert_outcomes(failed=1)
    pytester.runpytest_subprocess("--horolog-undecided=fail").assert_outcomes(failed=1)
    done = pytester.runpytest_subprocess("--horolog-undecided=skip", "-rs")
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["*undecided: model: the result does not answer it*"])


def test_undecided_is_tried_again_so_often(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        HEAD
        + """
import pytest

@pytest.mark.parametrize("retries", [0, 2])
def test_retries(horolog, retries):
    calls = []
    def run():
        calls.append(1)
        return system("14 ms").analyze("none")
    with pytest.raises(BaseException):
        horolog.assert_meets(run, gate={"model"}, retries=retries)
    assert len(calls) == retries + 1
    for bad in ("proof", set(), {"speed"}):
        with pytest.raises(h.BadInput, match="^gate"):
            horolog.assert_meets(run, gate=bad)
    with pytest.raises(h.BadInput, match="^result"):
        horolog.assert_meets(3)
    with pytest.raises(h.BadInput, match="^retries"):
        horolog.assert_meets(run, retries=-1)
"""
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=2)
