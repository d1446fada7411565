"""Runs SimSo on the task sets of the bench `simso`, one process for all of them.

Input, lines: `set POLICY HORIZON_NS`, then `task PERIOD_NS WCET_NS DEADLINE_NS` for each of its tasks. Output per set:
`seconds S`, the time of SimSo's own run without set-up, then for each task a line of the response times (ns) of its
finished jobs in the order of their releases.
"""

import sys
import time
import warnings

warnings.simplefilter("ignore")  # SimPy 2 is older than the interpreter

from simso.configuration import Configuration  # noqa: E402
from simso.core import Model  # noqa: E402

SCHEDULERS = {"fixed-priority": "simso.schedulers.RM_mono", "edf": "simso.schedulers.EDF_mono"}
CYCLES_PER_MS = 1_000_000  # one cycle is one nanosecond


def milliseconds(nanoseconds: int) -> float:
    """SimSo takes milliseconds and cuts the cycles to whole ones: a quarter more keeps the number."""
    return (nanoseconds + 0.25) / CYCLES_PER_MS


def run(policy: str, horizon: int, tasks: list[tuple[int, int, int]]) -> None:
    configuration = Configuration()
    configuration.cycles_per_ms = CYCLES_PER_MS
    configuration.duration = horizon
    for number, (period, wcet, deadline) in enumerate(tasks):
        configuration.add_task(
            name=f"T{number}",
            identifier=number,
            period=milliseconds(period),
            activation_date=0,
            wcet=milliseconds(wcet),
            deadline=milliseconds(deadline),
            abort_on_miss=False,
        )
    configuration.add_processor(name="CPU 1", identifier=1)
    configuration.scheduler_info.clas = SCHEDULERS[policy]
    configuration.check_all()
    model = Model(configuration)
    begin = time.perf_counter()
    model.run_model()
    print("seconds", time.perf_counter() - begin)
    for task, (period, _, _) in zip(model.task_list, tasks):
        ends = enumerate(job.end_date for job in task.jobs)
        print(*(int(end) - number * period for number, end in ends if end is not None and end <= horizon))


def main() -> None:
    sets: list[tuple[str, int, list[tuple[int, int, int]]]] = []
    for line in sys.stdin:
        word, *values = line.split()
        if word == "set":
            sets.append((values[0], int(values[1]), []))
        else:
            period, wcet, deadline = map(int, values)
            sets[-1][2].append((period, wcet, deadline))
    for policy, horizon, tasks in sets:
        run(policy, horizon, tasks)


if __name__ == "__main__":
    main()
