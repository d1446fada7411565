"""Timing as a test: pytest --junitxml=timing.xml --horolog-reports=reports."""

import sys


def test_every_deadline_is_proved(horolog):
    result = horolog.load("robot.toml").analyze(machine="none")
    horolog.assert_meets(result, gate={"proof"})


def test_the_loop_is_closed(horolog):
    result = horolog.loop("robot.toml", "200 ms", machine="none", best_effort=True)
    horolog.assert_meets(result, gate={"proof"})


def test_every_frame_is_planned(horolog):
    recording = horolog.record([sys.executable, "camera.py", "5"], cpus={0}, events=["python"])
    names = [record.event for record in recording.trace() if record.kind == "user"]
    assert recording.lost == 0 and names.count("plan/begin") == names.count("plan/end") == 5
