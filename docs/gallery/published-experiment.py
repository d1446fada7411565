import marimo

__generated_with = "0.25.2"
app = marimo.App()


@app.cell
def _():
    import json
    import os
    import subprocess
    from pathlib import Path

    import marimo as mo
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "horolog", "svg.fonttype": "none", "font.family": "sans-serif"})
    return Path, json, mo, os, plt, subprocess


@app.cell
def _(mo):
    mo.md("""
    # A published experiment made again

    Búrdalo, Espinosa, Terrasa and García-Fornes (2007) compared servers, slack stealing (DASS) and dual priority (DP) as ways to
    serve soft jobs beside hard tasks: 72 combinations of loads, 360 applications. The installed command makes the simulated part
    again, 2,520 runs, and says of each statement of the paper whether it agrees. The figure is theirs, figures 2 to 4: mean response
    times of soft jobs as a share of those in the background.
    """)
    return


@app.cell
def _(json, os, subprocess):
    command = os.environ.get("HOROLOG_COMMAND", "horolog")
    done = subprocess.run(
        [command, "-q", "experiment", "run", "aperiodic-1", "--seeds", "1", "--format", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    # 1 says that some statement does not agree.
    assert done.returncode in (0, 1), done.stderr
    experiment = json.loads(done.stdout)
    return (experiment,)


@app.cell
def _(experiment, mo):
    rows = [
        {"statement": fact["statement"], "published": fact["published"], "agreement": fact["agreement"]["word"]}
        for fact in experiment["facts"]
        if fact["agreement"]["word"] != "not-measurable"
    ]
    counts = experiment["counts"]
    assert (counts["agree"], counts["disagree"]) == (16, 5)
    mo.ui.table(rows, selection=None)
    return


@app.cell
def _(Path, experiment, os, plt):
    series = {one["columns"][0]: one for one in experiment["series"] if "soft response time" in one["name"]}
    figure, panels = plt.subplots(1, 3, figsize=(9, 3.2), sharey=True, layout="constrained")
    for axes, (what, one) in zip(panels, series.items(), strict=True):
        for marker, column in zip("os^vDx", range(2, len(one["columns"])), strict=False):
            axes.plot(
                [row[0] for row in one["rows"]],
                [row[column] for row in one["rows"]],
                marker=marker,
                markersize=4,
                linewidth=1,
                label=one["columns"][column],
            )
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_xlabel(what)
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("soft response / background")
    panels[0].set_ylim(0, 1.05)
    panels[-1].legend(fontsize="small")
    figure.savefig(
        Path(os.environ.get("HOROLOG_GALLERY", ".")) / "published-experiment.svg",
        metadata={"Date": None, "Creator": None},
    )
    figure
    return


if __name__ == "__main__":
    app.run()
