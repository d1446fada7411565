/** Response-time distributions: per task, simulated and measured over each other, with bound and deadline. */
import { type Bucket, domain, rebin, tail, thin } from "./distribution";
import { freshId, h, s } from "./dom";
import type { Report, RunKind, TaskRow } from "./types";
import { count, percent, tickLabel, ticks, time, unitFor } from "./units";

type Mode = "tail" | "histogram";

interface Series {
  kind: RunKind;
  buckets: Bucket[];
  jobs: number;
  max: number;
}

/** In the chart's own units; narrow screens get a narrower chart rather than smaller letters. */
const SIZE = { width: 560, height: 226, left: 52, right: 14, top: 30, bottom: 28 };
const NARROW = matchMedia("(max-width: 46rem)");
const CELLS = 64;

export function chartsSection(report: Report): HTMLElement {
  const section = h(
    "section",
    { id: "distributions", "aria-labelledby": "distributions-title" },
    h("h2", { id: "distributions-title" }, "Response times"),
  );
  const tasks = report.tasks
    .map((task, index) => ({ task, series: seriesOf(report, index) }))
    .filter(({ series }) => series.length > 0);
  if (tasks.length === 0) {
    section.append(h("p", { class: "empty" }, "No job finished: there is nothing to show."));
    return section;
  }
  const grid = h("div", { class: "charts" });
  let shown: Mode = "tail";
  const draw = (mode: Mode) => {
    shown = mode;
    SIZE.width = NARROW.matches ? 350 : 560;
    grid.replaceChildren(...tasks.map(({ task, series }) => figure(task, series, mode)));
  };
  NARROW.addEventListener("change", () => draw(shown));
  section.append(modes(draw), grid);
  draw(shown);
  return section;
}

function seriesOf(report: Report, task: number): Series[] {
  return report.runs.flatMap((run): Series[] => {
    const of = run.tasks[task];
    if (!of || of.histogram.length === 0) return [];
    const jobs = of.histogram.reduce((sum, [, n]) => sum + n, 0);
    return [{ kind: run.kind, buckets: of.histogram, jobs, max: of.response_ns_max ?? of.histogram.at(-1)![0] }];
  });
}

function modes(draw: (mode: Mode) => void): HTMLElement {
  const name = freshId("mode");
  const option = (mode: Mode, text: string, checked: boolean) =>
    h("label", {}, h("input", { type: "radio", name, value: mode, checked, onchange: () => draw(mode) }), h("span", {}, text));
  return h(
    "fieldset",
    { class: "segmented" },
    h("legend", { class: "hidden" }, "What the charts show"),
    option("tail", "Tail: share of jobs that take at least so long", true),
    option("histogram", "Histogram", false),
  );
}

function figure(task: TaskRow, series: Series[], mode: Mode): HTMLElement {
  const least = Math.min(...series.map((one) => one.buckets[0][0]));
  const most = Math.max(task.bound_ns ?? 0, ...series.map((one) => one.max));
  const [from, to] = domain(least, most, task.deadline_ns);
  const floor = Math.min(...series.map((one) => 1 / one.jobs));
  const plot = new Plot(from, to, Math.min(floor * 0.7, 0.05));
  const svg = s("svg", {
    viewBox: `0 0 ${SIZE.width} ${SIZE.height}`,
    role: "img",
    "aria-label": `${task.name}: ${series.map(inWords).join("; ")}`,
  });
  svg.append(plot.axes());
  for (const one of series) svg.append(mode === "tail" ? plot.tail(one) : plot.histogram(one));
  svg.append(...plot.limits(task));
  const legend = h("span", { class: "legend" });
  for (const one of series) {
    legend.append(h("span", {}, h("i", { class: `key line-${one.kind}` }), `${one.kind}, ${count(one.jobs)} jobs`));
  }
  return h("figure", {}, h("figcaption", {}, h("strong", {}, task.name), legend), svg, hover(svg, plot, series));
}

function inWords(one: Series): string {
  return `${one.kind}, ${one.jobs} jobs, maximum ${time(one.max)}`;
}

/** The value under the pointer, in words below the chart. */
function hover(svg: SVGSVGElement, plot: Plot, series: Series[]): HTMLElement {
  const line = s("line", { class: "cursor", y1: SIZE.top, y2: SIZE.height - SIZE.bottom, visibility: "hidden" });
  svg.append(line);
  const words = h("p", { class: "hover" }, "\u00a0");
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * SIZE.width;
    const at = plot.timeAt(x);
    if (x < SIZE.left || x > SIZE.width - SIZE.right) return;
    line.setAttribute("x1", String(x));
    line.setAttribute("x2", String(x));
    line.setAttribute("visibility", "visible");
    const shares = series.map((one) => {
      const reached = one.buckets.reduce((sum, [lower, n]) => (lower >= at ? sum + n : sum), 0);
      return `${one.kind} ${percent(reached / one.jobs)}`;
    });
    words.textContent = `at least ${time(at)}: ${shares.join(", ")}`;
  });
  svg.addEventListener("pointerleave", () => {
    line.setAttribute("visibility", "hidden");
    words.textContent = "\u00a0";
  });
  return words;
}

class Plot {
  private readonly width = SIZE.width - SIZE.left - SIZE.right;
  private readonly height = SIZE.height - SIZE.top - SIZE.bottom;

  constructor(
    private readonly from: number,
    private readonly to: number,
    private readonly floor: number,
  ) {}

  timeAt(x: number): number {
    return this.from + ((x - SIZE.left) / this.width) * (this.to - this.from);
  }

  private x(ns: number): number {
    return SIZE.left + ((ns - this.from) / (this.to - this.from)) * this.width;
  }

  /** Logarithmic: the share 1 at the top, the floor at the bottom. */
  private y(share: number): number {
    const depth = Math.log10(Math.max(share, this.floor)) / Math.log10(this.floor);
    return SIZE.top + depth * this.height;
  }

  axes(): SVGElement {
    const group = s("g", { class: "axes", "aria-hidden": "true" });
    const right = SIZE.width - SIZE.right;
    const bottom = SIZE.height - SIZE.bottom;
    const decades = Math.ceil(-Math.log10(this.floor));
    const every = Math.max(1, Math.ceil(decades / 6));
    for (let decade = 0; 10 ** -decade >= this.floor; decade += every) {
      const y = this.y(10 ** -decade);
      group.append(s("line", { class: "grid", x1: SIZE.left, x2: right, y1: y, y2: y }));
      group.append(s("text", { x: SIZE.left - 7, y: y + 3.5, class: "end" }, percent(10 ** -decade)));
    }
    const { at, step } = ticks(this.from, this.to, this.width / 80);
    const unit = unitFor(this.to);
    for (const ns of at) {
      const x = this.x(ns);
      group.append(s("line", { class: "tick", x1: x, x2: x, y1: bottom, y2: bottom + 4 }));
      group.append(s("text", { x, y: bottom + 17, class: "middle" }, tickLabel(ns, step, unit)));
    }
    group.append(s("line", { class: "base", x1: SIZE.left, x2: right, y1: bottom, y2: bottom }));
    return group;
  }

  tail(one: Series): SVGElement {
    const steps = thin(tail(one.buckets), (this.to - this.from) / this.width / 1.5);
    let path = `M${this.x(this.from).toFixed(1)} ${this.y(1).toFixed(1)}`;
    let last = 1;
    for (const { x, share } of steps) {
      path += `H${this.x(x).toFixed(1)}`;
      if (share !== last) path += `V${this.y(share).toFixed(1)}`;
      last = share;
    }
    const end = this.x(one.max).toFixed(1);
    const group = s("g", { class: `series ${one.kind}` });
    group.append(s("path", { class: "outline", d: `${path}H${end}V${this.y(this.floor).toFixed(1)}` }));
    group.append(s("circle", { cx: end, cy: this.y(1 / one.jobs).toFixed(1), r: 3 }));
    return group;
  }

  histogram(one: Series): SVGElement {
    const cells = rebin(one.buckets, this.from, this.to, CELLS);
    const base = this.y(this.floor);
    const width = this.width / CELLS;
    let path = "";
    cells.forEach((share, cell) => {
      if (share === 0) return;
      const x = SIZE.left + cell * width;
      path += `M${x.toFixed(1)} ${base.toFixed(1)}V${this.y(share).toFixed(1)}h${width.toFixed(2)}V${base.toFixed(1)}`;
    });
    return s("g", { class: `series ${one.kind}` }, s("path", { class: "area", d: path }), s("path", { class: "outline", d: path }));
  }

  /** Bound and deadline; one that lies beyond the axis is named at its end. */
  limits(task: TaskRow): SVGElement[] {
    const out: SVGElement[] = [];
    const limit = (name: string, ns: number | null, y: number) => {
      if (ns === null) return;
      const beyond = ns > this.to;
      const x = beyond ? SIZE.width - SIZE.right : this.x(ns);
      if (!beyond) out.push(s("line", { class: `limit ${name}`, x1: x, x2: x, y1: y + 3, y2: SIZE.height - SIZE.bottom }));
      const left = x > SIZE.left + 110;
      const text = `${name} ${time(ns)}${beyond ? " →" : ""}`;
      out.push(s("text", { class: `limit ${name} ${left ? "end" : ""}`, x: left ? x + (beyond ? 0 : -4) : x + 4, y }, text));
    };
    limit("bound", task.bound_ns, SIZE.top - 4);
    limit("deadline", task.deadline_ns, SIZE.top - 17);
    return out;
  }
}
