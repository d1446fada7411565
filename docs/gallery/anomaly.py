import marimo

__generated_with = "0.25.2"
app = marimo.App()


@app.cell
def _():
    import os
    import tempfile
    from pathlib import Path

    import horolog
    import marimo as mo
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "horolog", "svg.fonttype": "none", "font.family": "sans-serif"})
    return Path, horolog, mo, os, plt, tempfile


@app.cell
def _(mo):
    mo.md("""
    # Less work, more delay

    Three tasks under EDF that cannot be preempted. When `middle` executes its 8 ms, every deadline holds. When it is done after
    7 ms, the processor is free 1 ms earlier, `long` begins before `fast` comes again, and `fast` is late. So a test run in which
    every job takes its worst-case execution time proves nothing here (Graham 1969 has the same for several processors).
    """)
    return


@app.cell
def _(horolog):
    def system_of(middle):
        def task(name, period, wcet, bcet, **more):
            return {
                "name": name,
                "period": f"{period} ms",
                "offset": "0 ms",
                "wcet": f"{wcet} ms",
                "bcet": f"{bcet} ms",
                "preemption": "non-preemptive",
                **more,
            }

        return horolog.System(
            system={"name": "anomaly", "policy": "edf"},
            task=[
                task("fast", 10, 2, 1),
                task("middle", 30, 8, 7, execution={"jobs": [f"{middle} ms"]}),
                task("long", 60, 13, 3),
            ],
        )

    return (system_of,)


@app.cell
def _(Path, horolog, system_of, tempfile):
    def simulated(middle):
        """The outcome, and of each task when its jobs executed and which were late, in ms."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "set.trace"
            outcome = system_of(middle).simulate("60 ms", machine="none", trace=file)
            records = list(horolog.read_trace(file))
        begun, bars, late = {}, [], set()
        for record in records:
            job = (record.task, record.job)
            if record.kind == "start":
                begun[job] = record.time_ns
            elif record.kind == "completion":
                bars.append((job, begun[job] / 1e6, record.time_ns / 1e6))
            elif record.kind == "miss":
                late.add(job)
        return outcome, bars, late

    runs = {middle: simulated(middle) for middle in (8, 7)}
    assert runs[8][0].task("fast").missed == 0
    assert runs[7][0].task("fast").missed == 1
    assert runs[7][0].task("fast").response_ns_max == 14_000_000
    return (runs,)


@app.cell
def _(mo, system_of):
    analysis = system_of(8).analyze(machine="none")
    # The proof is not fooled: it says that 15 ms may pass, and never that the deadline holds.
    assert not analysis.holds
    assert analysis.task("fast").response_ns == 15_000_000
    mo.Html(analysis._repr_html_())
    return


@app.cell
def _(Path, os, plt, runs):
    figure, rows = plt.subplots(2, 1, figsize=(7, 3.6), sharex=True, layout="constrained")
    names = ["long", "middle", "fast"]
    for axes, (middle, (_, bars, late)) in zip(rows, runs.items(), strict=True):
        for job, begin, end in bars:
            colour = "#b00020" if job in late else "#4477aa"
            axes.barh(names.index(job[0]), end - begin, left=begin, height=0.6, color=colour)
        for period, place in ((10, 2), (30, 1), (60, 0)):
            axes.vlines(range(0, 61, period), place - 0.4, place + 0.4, color="black", linewidth=0.8)
        axes.set_yticks(range(3), names)
        axes.set_title(f"middle executes {middle} ms: {'a job of fast is late' if late else 'no job is late'}", fontsize="medium")
        axes.set_xlim(0, 60)
    rows[-1].set_xlabel("time in ms")
    figure.savefig(
        Path(os.environ.get("HOROLOG_GALLERY", ".")) / "anomaly.svg", metadata={"Date": None, "Creator": None}
    )
    figure
    return


if __name__ == "__main__":
    app.run()
