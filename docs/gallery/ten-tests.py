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
    # Ten tests of two processors

    Eight tasks on two processors, under global EDF and under global fixed priorities (the shorter the period, the more important).
    All ten tests are sufficient: what they accept is proved, what they do not accept may still hold. `horolog.batch` has tests of
    one processor; here `analyze` is asked for each set, and says what each test came to.
    """)
    return


@app.cell
def _():
    utilisations = [0.6 + 0.1 * step for step in range(13)]
    count = 40
    edf = ("gfb", "bak", "bcl", "bcl-slack", "response", "bar", "ff-dbf")
    fixed = ("bcl-slack", "response", "limited-carry-in")
    tests = [*(f"global-edf-{name}" for name in edf), *(f"global-fp-{name}" for name in fixed)]
    return count, tests, utilisations


@app.cell
def _(horolog):
    def system_of(order, tasks):
        """The tasks (C, T) on two processors, both of which run the first jobs of one queue."""
        ranks = sorted(range(len(tasks)), key=lambda place: (-tasks[place][1], place))
        listed = [
            {"name": f"t{place}", "separation": f"{period} ns", "wcet": f"{wcet} ns"}
            | ({} if order == "edf" else {"priority": 1 + ranks.index(place)})
            for place, (wcet, period) in enumerate(tasks)
        ]
        cluster = {"name": "both", "cpus": [0, 1], "order": order, "tasks": [one["name"] for one in listed]}
        return horolog.System(
            system={"name": "set", "policy": order}, platform={"cpus": 2}, task=listed, cluster=[cluster]
        )

    return (system_of,)


@app.cell
def _(count, horolog, system_of, tests, utilisations):
    accepted = {test: [0] * len(utilisations) for test in tests}
    for place, utilisation in enumerate(utilisations):
        sets = horolog.generate(
            count, tasks=8, utilisation=utilisation, granularity_ns=1_000_000, seed=7, first=place * count
        )
        for wcets, periods in zip(sets.wcet.tolist(), sets.period.tolist(), strict=True):
            for order in ("edf", "fixed-priority"):
                analysis = system_of(order, list(zip(wcets, periods, strict=True))).analyze(machine="none")
                for said in analysis.data["processors"][0]["tests"]:
                    if said["test"] in accepted and said["verdict"] == "meets":
                        accepted[said["test"]][place] += 1
    ratios = {test: [number / count for number in numbers] for test, numbers in accepted.items()}
    return (ratios,)


@app.cell
def _(ratios):
    # What the theory orders is ordered here: slack and response tests contain the plain one; all accept at 0.6, none at 1.8.
    assert all(one >= other for one, other in zip(ratios["global-edf-bcl-slack"], ratios["global-edf-bcl"], strict=True))
    assert all(
        one >= other for one, other in zip(ratios["global-fp-response"], ratios["global-fp-bcl-slack"], strict=True)
    )
    assert len(ratios) == 10
    return


@app.cell
def _(Path, os, plt, ratios, utilisations):
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for marker, (test, ratio) in zip("os^vDx+*<>", ratios.items(), strict=True):
        style = "--" if test.startswith("global-fp") else "-"
        axes.plot(utilisations, ratio, style, marker=marker, markersize=4, linewidth=1, label=test.removeprefix("global-"))
    axes.set_xlabel("utilisation of two processors")
    axes.set_ylabel("share of accepted sets")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", ncols=2)
    figure.savefig(
        Path(os.environ.get("HOROLOG_GALLERY", ".")) / "ten-tests.svg", metadata={"Date": None, "Creator": None}
    )
    figure
    return


if __name__ == "__main__":
    app.run()
