import marimo

__generated_with = "0.25.2"
app = marimo.App()


@app.cell
def _():
    import os
    import subprocess
    from pathlib import Path
    from statistics import median

    import horolog
    import marimo as mo
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "horolog", "svg.fonttype": "none", "font.family": "sans-serif"})
    return Path, horolog, median, mo, os, plt, subprocess


@app.cell
def _(mo):
    mo.md("""
    # From the trace of a real program to a proof

    The sound server JACK with two clients, unmodified, on one processor: it wakes up every 10 ms, calls its clients, and every one of
    them has to be done before the next period. `jack.hrt` beside this notebook was recorded once by

        horolog trace record --kernel --for 5s -o jack.hrt -- ./jack.sh

    where `jack.sh` starts `jackd -R -P 70 -d dummy -r 48000 -p 480`, `jack_metro -b 120` and `jack_simple_client` with
    `taskset -c 1`. Everything below is computed from that file.
    """)
    return


@app.cell
def _(horolog, mo):
    trace = horolog.read_trace(mo.notebook_dir() / "jack.hrt")
    switches = [record for record in trace if record.kind == "kernel-switch" and record.cpu == 1]
    entered = {}
    for record in switches:
        if (record.comm or "").startswith("jack"):
            entered.setdefault((record.next_thread, record.comm), []).append(record.time_ns)
    # The threads that make sound run once a period; the others wait for messages.
    threads = {tid: comm for (tid, comm), times in entered.items() if len(times) > 150}
    assert len(threads) == 3, entered
    return switches, threads, trace


@app.cell
def _(mo, os, subprocess, threads, trace):
    command = os.environ.get("HOROLOG_COMMAND", "horolog")
    chosen = [word for tid in threads for word in ("--thread", str(tid))]
    words = [command, "-q", "measure", "extract", "--from", str(mo.notebook_dir() / "jack.hrt"), *chosen]
    extracted = subprocess.run(words, capture_output=True, text=True, check=False)
    assert extracted.returncode == 0, extracted.stderr
    assert trace.count > 0
    mo.md(f"```toml\n{extracted.stdout}\n```")
    return (extracted,)


@app.cell
def _(extracted, horolog, mo):
    guessed = horolog.System.parse(extracted.stdout, "jack.toml").analyze(machine="none")
    assert guessed.closing.word == "undecided"
    mo.md(f"""
    The record tells no priorities, and of a guess nothing is proved:

        {guessed.closing.word}: {guessed.closing.text}

    JACK gives its own thread the priority of `-P`, and its clients 5 less. With that the file is complete.
    """)
    return


@app.cell
def _(extracted, horolog, mo):
    complete = ["system.unmodelled=[]", "task.jackd.priority=70"]
    complete += [f"task.{client}.priority=65" for client in ("jack_metro", "jack_simple_cli")]
    text = extracted.stdout.replace('priorities = "deadline-monotonic"\n', "")
    system = horolog.System.parse(text, "jack.toml", complete)
    analysis = system.analyze(machine="none")
    assert analysis.holds, analysis.closing
    assert all(task.deadline_ns == 10_000_000 for task in analysis.tasks)
    mo.Html(analysis._repr_html_())
    return (analysis,)


@app.cell
def _(switches, threads):
    def stretches():
        """When each of the threads had the processor, in ms."""
        for begin, end in zip(switches, switches[1:], strict=False):
            if begin.next_thread in threads:
                yield begin.next_thread, begin.time_ns / 1e6, end.time_ns / 1e6

    wakes = sorted(begin for tid, begin, _ in stretches() if tid == min(threads))
    distances = [later - earlier for earlier, later in zip(wakes, wakes[1:], strict=False)]
    return distances, stretches


@app.cell
def _(Path, analysis, distances, median, os, plt, stretches, threads):
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", width_ratios=[2, 1])
    order = sorted(threads)
    starts = [begin for tid, begin, _ in stretches() if tid == order[0]]
    origin = starts[len(starts) // 2]
    for tid, begin, end in stretches():
        if origin <= begin < origin + 0.2:
            left.barh(order.index(tid), 1000 * (end - begin), left=1000 * (begin - origin), height=0.5, color="#4477aa")
    left.set_yticks(range(3), [threads[tid] for tid in order])
    left.invert_yaxis()
    left.set_xlabel("us after the server got the processor, one period of the trace")
    names = [task.name for task in analysis.tasks]
    right.barh(names, [task.response_ns / 1e6 for task in analysis.tasks], height=0.5, color="#ccbb44", label="proved bound")
    right.axvline(10, color="#b00020", linewidth=1, label="deadline")
    right.set_xlim(0, 10.5)
    right.invert_yaxis()
    right.set_xlabel("ms")
    right.legend(fontsize="small", loc="lower right")
    right.set_title(f"{len(distances) + 1} periods, {median(distances):.3f} ms apart (median)", fontsize="small")
    figure.savefig(
        Path(os.environ.get("HOROLOG_GALLERY", ".")) / "real-program.svg", metadata={"Date": None, "Creator": None}
    )
    figure
    return


if __name__ == "__main__":
    app.run()
