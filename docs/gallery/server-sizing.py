import marimo

__generated_with = "0.25.2"
app = marimo.App()


@app.cell
def _():
    import os
    from pathlib import Path

    import horolog
    import marimo as mo
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "horolog", "svg.fonttype": "none", "font.family": "sans-serif"})
    return Path, horolog, mo, os, plt


@app.cell
def _(mo):
    mo.md("""
    # How large may a server be?

    Buttons of a panel are served by a server above three hard tasks. The larger its budget, the sooner a press is served, until
    the proof of a hard task breaks. A deferrable server keeps its budget for later, and may so take it twice in a row: it has to be
    smaller than a sporadic one with the same promise (Lehoczky, Sha and Strosnider 1987; Sprunt, Sha and Lehoczky 1989).
    """)
    return


@app.cell
def _(horolog):
    def system_of(kind, budget_us):
        def task(name, period, wcet, priority):
            return {"name": name, "period": f"{period} ms", "wcet": f"{wcet} ms", "priority": priority}

        return horolog.System(
            system={"name": "panel"},
            task=[
                task("motor", 10, 2, 30),
                task("sensors", 20, 4, 20),
                task("planner", 50, 10, 10),
                {"name": "button", "separation": "100 ms", "wcet": "6 ms", "deadline": "100 ms"},
            ],
            server=[
                {
                    "name": "panel",
                    "kind": kind,
                    "tasks": ["button"],
                    "budget": f"{budget_us} us",
                    "period": "10 ms",
                    "priority": 40,
                    "low_priority": "none",
                }
            ],
        )

    return (system_of,)


@app.cell
def _(system_of):
    kinds = ("polling", "deferrable", "sporadic")
    hard = ("motor", "sensors", "planner")
    found = {}
    for kind in kinds:
        for budget_us in range(250, 5_001, 250):
            analysis = system_of(kind, budget_us).analyze(machine="none")
            proved = all(analysis.task(name).verdict == "meets" for name in hard)
            found[kind, budget_us] = (proved, analysis.task("button").response_ns)
    return found, kinds


@app.cell
def _(found, kinds, mo):
    largest = {kind: max(budget for (one, budget), (proved, _) in found.items() if one == kind and proved) for kind in kinds}
    # A deferrable server has to be smaller than the two that count as a periodic task.
    assert largest["deferrable"] < largest["sporadic"] == largest["polling"]
    mo.md("Largest budgets (of 10 ms): " + ", ".join(f"{kind} {budget / 1000} ms" for kind, budget in largest.items()))
    return (largest,)


@app.cell
def _(Path, found, kinds, largest, os, plt):
    figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
    for server, marker, size in zip(kinds, "so^", (4, 8, 4), strict=True):
        points = [
            (budget / 1000, response / 1e6)
            for (one, budget), (proved, response) in found.items()
            if one == server and proved and response is not None
        ]
        axes.plot(*zip(*points, strict=True), marker=marker, markersize=size, linewidth=1.2, label=server, markerfacecolor="none")
        axes.axvline(largest[server] / 1000, color="grey", linewidth=0.6, linestyle=":")
    axes.set_xlabel("budget of 10 ms, in ms (while every hard deadline is proved)")
    axes.set_ylabel("bound of a press in ms")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(
        Path(os.environ.get("HOROLOG_GALLERY", ".")) / "server-sizing.svg", metadata={"Date": None, "Creator": None}
    )
    figure
    return


if __name__ == "__main__":
    app.run()
