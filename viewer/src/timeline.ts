/** The zoomable timeline: rows on a canvas, labels and tools as elements, every action by keyboard too. */
import { chip, freshId, h, place } from "./dom";
import { addGestures } from "./gestures";
import { jobOfMiss, nextMiss, worst } from "./jumps";
import { Minimap } from "./minimap";
import { Painter, Sheets } from "./paint";
import { type Row, HEAD, ROW, allRows, arrange, decodeAll } from "./rows";
import { upperBound } from "./search";
import { onTheme, palette } from "./theme";
import { help, legend } from "./timeline_help";
import type { Finding, PackedLane, Report } from "./types";
import { exactTime, tickBase, tickLabel, ticks, time, unitFor } from "./units";
import { Viewport } from "./viewport";
import { jobAt, jobWords, laneWords, placeWords } from "./words";

/** How long a page that is not scrolled waits for a free moment before it reads the recording. */
const IDLE_MS = 1_500;

interface Placed {
  finding: Finding;
  index: number;
  at: number;
}

interface Selection {
  row: Row;
  job: number;
}

export class TimelineView {
  readonly element: HTMLElement;
  private readonly rows: Row[];
  private readonly view: Viewport;
  private readonly minimap: Minimap;
  private readonly placed: Placed[];
  private readonly visible: Set<number>;
  private arranged: { rows: Row[]; height: number };
  private selection: Selection | null = null;
  private finding: Placed | null = null;
  private colours = palette();
  private readonly sheets = new Sheets();
  private scheduled = false;
  private printing = false;
  private decoding: Promise<void> | null = null;
  private readonly canvas = h("canvas", { "aria-hidden": "true" });
  private readonly cursor = h("div", { class: "cursor", hidden: true });
  private readonly brush = h("div", { class: "brush", hidden: true });
  private readonly tip = h("div", { class: "tip", role: "presentation", hidden: true });
  private readonly labels = h("div", { class: "labels", role: "group", "aria-label": "Lanes" });
  private readonly plot: HTMLElement;
  private readonly base = h("span", { class: "base", "aria-hidden": "true" });
  private readonly range = h("output", { class: "range" });
  private readonly readout = h("p", { class: "readout", role: "status", "aria-live": "polite" });

  constructor(private readonly report: Report) {
    this.rows = allRows(report);
    this.visible = new Set(this.rows.map((row) => row.runIndex));
    this.arranged = arrange(this.rows, this.visible, () => ROW);
    const lines = report.runs.flatMap((run) => (run.timeline ? [run.timeline] : []));
    const first = Math.min(0, ...lines.map((line) => line.from_ns));
    const last = Math.max(first + 1000, ...lines.map((line) => line.to_ns));
    this.view = new Viewport(first, last);
    this.placed = placedFindings(report);
    this.minimap = new Minimap(report, this.view, Float64Array.from(this.placed, (p) => p.at));
    const hint = freshId("timeline-help");
    this.plot = h(
      "div",
      { class: "plot", tabindex: "0", role: "group", "aria-label": "Timeline", "aria-describedby": hint },
      this.canvas,
      this.cursor,
      this.brush,
      this.tip,
    );
    this.element = h(
      "section",
      { id: "timeline", "aria-labelledby": "timeline-title" },
      h("h2", { id: "timeline-title" }, "Timeline"),
    );
    if (this.rows.length === 0) {
      this.element.append(h("p", { class: "empty" }, "No timeline was recorded."));
      return;
    }
    const body = h("div", { class: "timeline" }, this.labels, this.plot);
    const map = h("div", { class: "timeline" }, h("span", { class: "labels whole" }, "Whole run"), this.minimap.element);
    this.element.append(this.tools(), body, map, this.readout, legend(), help(hint));
    this.listen();
  }

  /** Starts decoding when the section comes near the screen, else when the page has nothing else to do: it may be printed or saved unseen. */
  start(): void {
    if (this.rows.length === 0) return;
    this.layout();
    const observer = new IntersectionObserver(
      (entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        observer.disconnect();
        void this.decoded();
      },
      { rootMargin: "600px" },
    );
    observer.observe(this.element);
    const later = () => void this.decoded();
    if ("requestIdleCallback" in window) requestIdleCallback(later, { timeout: IDLE_MS });
    else setTimeout(later, IDLE_MS);
  }

  /** Shows the worst job of a task: measured, else simulated. */
  async showWorst(task: number): Promise<void> {
    await this.decoded();
    const rows = this.rows.filter((row) => row.packed.kind === "task" && row.packed.index === task);
    const found = worst(rows.filter((row) => row.runKind === "measured")) ?? worst(rows);
    if (!found) return;
    this.showJob(found.row, found.job, true);
    const longest = found.row.run.tasks[task]?.response_ns_max ?? 0;
    if (found.row.lane!.jobs.responses[found.job] >= longest) return;
    const truth = `The longest response, ${exactTime(longest)}, lies behind the part of the run that is drawn. `;
    this.readout.prepend(truth);
  }

  /** Shows the first missed deadline of the newest run that has one. */
  async showFirstMiss(): Promise<void> {
    const rows = await this.decodedRows();
    const measured = rows.filter((row) => row.runKind === "measured");
    const found = nextMiss(measured, -Infinity, true) ?? nextMiss(rows, -Infinity, true);
    if (found) this.showJob(found.row, jobOfMiss(found.row, found.at), true);
  }

  /** Shows a lane, of the newest run that has it. */
  async showLane(is: (lane: PackedLane) => boolean): Promise<void> {
    const rows = await this.decodedRows();
    const row = rows.findLast((one) => is(one.packed));
    if (!row) return;
    this.view.fit();
    this.select(row, -1);
    this.reveal();
  }

  /** All rows, decoded. */
  async decodedRows(): Promise<Row[]> {
    await this.decoded();
    return this.rows;
  }

  /** Shows a finding. */
  async showFinding(index: number): Promise<void> {
    await this.decoded();
    const found = this.placed.find((p) => p.index === index);
    if (found) this.goTo(found, true);
  }

  private decoded(): Promise<void> {
    this.decoding ??= this.decode();
    return this.decoding;
  }

  private async decode(): Promise<void> {
    this.plot.setAttribute("aria-busy", "true");
    let left = this.rows.length;
    await decodeAll(this.rows, () => {
      left--;
      this.readout.textContent = left > 0 ? `Reading the recording: ${left} lanes to go` : "";
      this.schedule();
    });
    this.plot.removeAttribute("aria-busy");
    this.layout();
    this.draw();
    this.element.dataset["ready"] = String(Math.round(performance.now()));
  }

  private tools(): HTMLElement {
    const button = (label: string, title: string, action: () => void) => h("button", { title, onclick: action }, label);
    const bar = h(
      "div",
      { class: "tools", role: "toolbar", "aria-label": "Timeline" },
      h("span", { class: "group" }, button("−", "Zoom out (−)", () => this.view.zoom(2)), button("+", "Zoom in (+)", () => this.view.zoom(0.5)), button("Whole run", "Show everything (Home)", () => this.view.fit())),
      h("span", { class: "group" }, button("Worst job", "Longest response of the selected lane, else of all (w)", () => this.jumpWorst()), button("Next miss", "Next missed deadline (m; Shift+m: the one before)", () => this.jumpMiss(true)), button("Next finding", "Next finding (f; Shift+f: the one before)", () => this.jumpFinding(true))),
    );
    if (this.visible.size > 1) bar.append(this.filters());
    bar.append(this.range);
    return bar;
  }

  private filters(): HTMLElement {
    const box = h("span", { class: "group" });
    for (const index of this.visible) {
      const run = this.report.runs[index];
      const flip = (event: Event) => {
        if ((event.target as HTMLInputElement).checked) this.visible.add(index);
        else this.visible.delete(index);
        this.layout();
      };
      const input = h("input", { type: "checkbox", checked: true, onchange: flip });
      box.append(h("label", { class: "check" }, input, h("i", { class: `key block-${run.kind}` }), run.kind));
    }
    return box;
  }

  private listen(): void {
    this.view.onChange(() => this.schedule());
    onTheme(() => this.layout());
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
    // What is out of sight is not drawn in a long timeline: then each scroll shows other rows.
    const moved = () => this.isLong && this.schedule();
    addEventListener("scroll", moved, { passive: true });
    addEventListener("resize", moved);
    new ResizeObserver(() => this.layout()).observe(this.plot);
    addGestures(this.plot, this.view, {
      timeAt: (x) => this.timeAt(x),
      hover: (event) => this.hover(event),
      pick: (event) => this.pick(event),
      brush: (from, to) => this.showBrush(from, to),
    });
    this.element.addEventListener("keydown", (event) => this.key(event));
  }

  private layout(): void {
    this.colours = palette();
    const names = new Map<Row, HTMLElement>();
    arrange(this.rows, this.visible, () => ROW).rows.forEach((row) => names.set(row, this.labelOf(row)));
    this.labels.replaceChildren(this.base, ...names.values());
    // A long name takes as many lines as it needs.
    const needed = new Map<Row, number>();
    for (const [row, label] of names) needed.set(row, label.scrollHeight);
    this.arranged = arrange(this.rows, this.visible, (row) => Math.max(ROW, (needed.get(row) ?? 0) + 2));
    for (const [row, label] of names) place(label, { top: `${row.y}px`, height: `${row.height}px` });
    place(this.plot, { height: `${this.arranged.height}px` });
    place(this.labels, { height: `${this.arranged.height}px` });
    this.minimap.draw(this.arranged.rows);
    this.schedule();
  }

  private labelOf(row: Row): HTMLElement {
    const label = h(
      "button",
      {
        class: `lane ${row.first ? "first" : ""}`,
        "aria-label": laneWords(row),
        "aria-pressed": String(this.selection?.row === row),
        onclick: () => this.select(row, -1),
      },
      h("span", { class: "lane-name" }, row.first ? row.name : ""),
      h("span", { class: `lane-run ${row.runKind}` }, row.runKind === "simulated" ? "sim" : "meas"),
    );
    return label;
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.draw();
    });
  }

  private draw(): void {
    const width = this.plot.clientWidth;
    const { height, rows } = this.arranged;
    if (width === 0) return;
    const [top, bottom] = this.inSight();
    const tall = bottom - top;
    const scale = tall * 2 > 16_000 ? 1 : Math.min(devicePixelRatio || 1, 2);
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(tall * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(tall * scale);
    }
    place(this.canvas, { top: `${top}px`, height: `${tall}px` });
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.setTransform(scale, 0, 0, scale, 0, -top * scale);
    context.clearRect(0, top, width, tall);
    const painter = new Painter(context, this.colours, width, this.sheets);
    const window = { from: this.view.from, to: this.view.to, width };
    this.drawSelected(painter, width);
    this.drawAxis(painter, width, height);
    for (const row of rows) if (row.y + row.height >= top && row.y <= bottom) painter.row(row, window);
    this.drawOver(painter, width, height);
    this.tell(painter);
  }

  /** Whether the timeline is so long that drawing all of it is waste. */
  private get isLong(): boolean {
    return this.arranged.height > 2 * innerHeight;
  }

  /** From where to where it is drawn: everything, or where it is long what can be seen and as much around. Paper shows all. */
  private inSight(): [top: number, bottom: number] {
    const { height } = this.arranged;
    if (this.printing || !this.isLong) return [0, height];
    const seen = -this.plot.getBoundingClientRect().top;
    const top = Math.floor(Math.min(Math.max(0, seen - innerHeight / 2), Math.max(0, height - 2 * innerHeight)));
    return [top, Math.min(height, top + 2 * innerHeight)];
  }

  /** Everything at once: paper does not wait for the next frame. */
  private print(printing: boolean): void {
    this.printing = printing;
    this.layout();
    this.draw();
  }

  /** The window in words, and as data for whoever drives the page from outside. */
  private tell(painter: Painter): void {
    const { from, to, span } = this.view;
    this.range.textContent = `${time(from, 6)} … ${time(to, 6)}  (${time(span)})`;
    const data = this.plot.dataset;
    data["from"] = String(from);
    data["to"] = String(to);
    data["counted"] = painter.counted.join(" ");
    data["primitives"] = String(painter.primitives);
    data["redraws"] = String(Number(data["redraws"] ?? 0) + 1);
  }

  private drawSelected(painter: Painter, width: number): void {
    const row = this.selection?.row;
    if (row && this.arranged.rows.includes(row)) painter.rect(0, row.y, width, row.height - 1, painter.colours.faint);
  }

  private drawAxis(painter: Painter, width: number, height: number): void {
    const { at, step } = ticks(this.view.from, this.view.to, Math.max(2, width / 110));
    const unit = unitFor(Math.max(step * 5, 1));
    const base = tickBase(this.view.from, this.view.to, unit);
    this.base.textContent = base === 0 ? "" : `${exactTime(base)} +`;
    for (const t of at) {
      const x = this.x(t, width);
      painter.line(x, HEAD - 18, height, painter.colours.line);
      const label = tickLabel(t - base, step, unit);
      const align = x < 30 ? "left" : x > width - 30 ? "right" : "center";
      painter.text(label, Math.min(Math.max(x, 2), width - 2), 11, painter.colours.muted, align);
    }
    const times = Float64Array.from(this.placed, (p) => p.at);
    const window = { from: this.view.from, to: this.view.to, width };
    painter.sparse(times, window, (t) => this.x(t, width), 7, (x, i) => {
      const bad = this.placed[i]?.finding.class !== "machine-disturbed" && this.placed[i]?.finding.class !== "note";
      painter.shape([[x, 21], [x + 5, 27], [x, 33], [x - 5, 27]], bad ? painter.colours.bad : painter.colours.warn);
    });
  }

  /** The chosen job's frame and the chosen finding's extent. */
  private drawOver(painter: Painter, width: number, height: number): void {
    const { context, colours } = painter;
    if (this.finding) {
      const from = this.x(this.finding.at, width);
      const to = this.x(this.finding.at + (this.finding.finding.length_ns ?? 0), width);
      context.globalAlpha = 0.16;
      painter.rect(from - 1, HEAD - 6, Math.max(2, to - from), height - HEAD, colours.warn);
      context.globalAlpha = 1;
      painter.line(from, HEAD - 6, height, colours.warn);
    }
    const { row, job } = this.selection ?? { row: null, job: -1 };
    if (!row?.lane || job < 0 || !this.arranged.rows.includes(row)) return;
    const [arrival, finish] = jobExtent(row, job);
    const from = this.x(arrival, width);
    context.strokeStyle = colours.focus;
    context.lineWidth = 2;
    context.strokeRect(from, row.y + 1, Math.max(3, this.x(finish, width) - from), row.height - 3);
    painter.primitives++;
  }

  private x(t: number, width: number): number {
    return ((t - this.view.from) / this.view.span) * width;
  }

  private timeAt(clientX: number): number {
    const box = this.plot.getBoundingClientRect();
    return this.view.from + ((clientX - box.left) / box.width) * this.view.span;
  }

  private rowAt(clientY: number): Row | null {
    const y = clientY - this.plot.getBoundingClientRect().top;
    return this.arranged.rows.find((row) => y >= row.y && y < row.y + row.height) ?? null;
  }

  private hover(event: PointerEvent | null): void {
    const shown = event !== null && event.pointerType !== "touch";
    this.cursor.hidden = !shown;
    this.tip.hidden = !shown;
    if (!shown) return;
    const box = this.plot.getBoundingClientRect();
    const x = event.clientX - box.left;
    const at = this.timeAt(event.clientX);
    const row = this.rowAt(event.clientY);
    place(this.cursor, { transform: `translateX(${x}px)` });
    const lines = [exactTime(Math.round(at))];
    const finding = event.clientY - box.top < HEAD ? this.findingNear(at) : null;
    if (finding) lines.push(finding.finding.text);
    if (row) {
      lines.push(`${row.name} · ${row.runKind}`, placeWords(row, at));
      if (row.lane?.kind === "task") {
        const job = jobAt(row.lane, at);
        if (job >= 0 && jobExtent(row, job)[1] >= at) lines.push(...jobWords(row, job).split(" · ").slice(1));
      }
    }
    this.tip.replaceChildren(...lines.map((line, i) => h(i === 0 ? "strong" : "span", {}, line)));
    const left = x > box.width / 2;
    const y = Math.max(0, Math.min(event.clientY - box.top + 14, this.arranged.height - 90));
    place(this.tip, { top: `${y}px`, left: left ? "auto" : `${x + 14}px`, right: left ? `${box.width - x + 14}px` : "auto" });
  }

  private findingNear(at: number): Placed | null {
    const reach = (this.view.span * 7) / Math.max(1, this.plot.clientWidth);
    return this.placed.find((p) => Math.abs(p.at - at) < reach) ?? null;
  }

  private pick(event: PointerEvent): void {
    const at = this.timeAt(event.clientX);
    const row = this.rowAt(event.clientY);
    const finding = row ? null : this.findingNear(at);
    if (finding) return this.goTo(finding, false);
    if (row) this.select(row, row.lane?.kind === "task" ? jobAt(row.lane, at) : -1);
  }

  private showBrush(from: number | null, to: number): void {
    this.brush.hidden = from === null;
    if (from === null) return;
    const width = this.plot.clientWidth;
    const [a, b] = [this.x(from, width), this.x(to, width)].sort((p, q) => p - q);
    place(this.brush, { left: `${a}px`, width: `${b - a}px` });
  }

  private select(row: Row, job: number): void {
    this.selection = { row, job };
    this.readout.textContent = job >= 0 ? jobWords(row, job) : laneWords(row);
    this.labels.querySelectorAll("button").forEach((label, i) => {
      label.setAttribute("aria-pressed", String(this.arranged.rows[i] === row));
    });
    this.schedule();
  }

  /** Goes to a job, with as much again on either side. */
  private showJob(row: Row, job: number, scroll = false): void {
    if (!this.visible.has(row.runIndex)) {
      this.visible.add(row.runIndex);
      this.layout();
    }
    const [from, to] = jobExtent(row, job);
    const room = Math.max((to - from) * 0.6, 2000);
    this.finding = null;
    this.view.show(from - room, to + room);
    this.select(row, job);
    if (scroll) this.reveal();
  }

  private reveal(): void {
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.element.scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "start" });
    this.plot.focus({ preventScroll: true });
  }

  private goTo(placed: Placed, scroll: boolean): void {
    this.finding = placed;
    const { finding, at } = placed;
    const length = finding.length_ns ?? 0;
    const row = this.rows.find((r) => r.runIndex === finding.run && r.packed.kind === "task" && r.packed.index === finding.task);
    const period = row?.task?.period_ns ?? row?.task?.deadline_ns ?? 2_000_000;
    const room = Math.max(length * 2, period);
    this.view.show(at - room, at + length + room);
    if (row) this.selection = { row, job: -1 };
    this.readout.replaceChildren(chip(finding.class === "machine-disturbed" ? "warn" : "bad", finding.kind), ` ${finding.text} (at ${exactTime(at)})`);
    this.schedule();
    if (scroll) this.reveal();
  }

  private jumpWorst(): void {
    const rows = this.selection?.row.packed.kind === "task" ? [this.selection.row] : this.arranged.rows;
    const found = worst(rows);
    if (found) this.showJob(found.row, found.job);
    else this.readout.textContent = "No finished job here.";
  }

  private jumpMiss(forward: boolean): void {
    const rows = this.selection?.row.packed.kind === "task" ? [this.selection.row] : this.arranged.rows;
    const found = nextMiss(rows, (this.view.from + this.view.to) / 2, forward) ?? nextMiss(this.arranged.rows, this.view.from, forward);
    if (!found) {
      this.readout.textContent = "No deadline was missed.";
      return;
    }
    this.showJob(found.row, jobOfMiss(found.row, found.at));
    const middle = found.at;
    this.view.show(middle - this.view.span / 2, middle + this.view.span / 2);
  }

  private jumpFinding(forward: boolean): void {
    const times = Float64Array.from(this.placed, (p) => p.at);
    if (times.length === 0) {
      this.readout.textContent = "There are no findings with a place.";
      return;
    }
    const from = this.finding ? this.placed.indexOf(this.finding) + (forward ? 1 : -1) : upperBound(times, this.view.from);
    this.goTo(this.placed[(from + times.length) % times.length], false);
  }

  private jumpJob(step: number): void {
    const row = this.selection?.row;
    if (!row?.lane || row.lane.kind !== "task") return;
    const middle = (this.view.from + this.view.to) / 2;
    const current = this.selection!.job >= 0 ? this.selection!.job : jobAt(row.lane, middle) - (step > 0 ? 1 : 0);
    const next = Math.min(Math.max(current + step, 0), row.lane.jobs.numbers.length - 1);
    if (next < 0) return;
    this.select(row, next);
    const [from, to] = jobExtent(row, next);
    if (from < this.view.from || to > this.view.to) this.view.show((from + to - this.view.span) / 2, (from + to + this.view.span) / 2);
  }

  private moveSelection(step: number): void {
    const rows = this.arranged.rows;
    const now = this.selection ? rows.indexOf(this.selection.row) : step > 0 ? -1 : rows.length;
    const row = rows[Math.min(Math.max(now + step, 0), rows.length - 1)];
    if (row) this.select(row, -1);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || (event.target as HTMLElement).matches("input")) return;
    const far = event.shiftKey ? 0.5 : 0.1;
    const actions: Record<string, () => void> = {
      ArrowLeft: () => this.view.pan(-far),
      ArrowRight: () => this.view.pan(far),
      ArrowUp: () => this.moveSelection(-1),
      ArrowDown: () => this.moveSelection(1),
      "+": () => this.view.zoom(0.5),
      "=": () => this.view.zoom(0.5),
      "-": () => this.view.zoom(2),
      Home: () => this.view.fit(),
      "0": () => this.view.fit(),
      w: () => this.jumpWorst(),
      m: () => this.jumpMiss(true),
      M: () => this.jumpMiss(false),
      f: () => this.jumpFinding(true),
      F: () => this.jumpFinding(false),
      ".": () => this.jumpJob(1),
      ",": () => this.jumpJob(-1),
      Escape: () => this.clear(),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  private clear(): void {
    this.selection = null;
    this.finding = null;
    this.readout.textContent = "";
    this.layout();
  }
}

/** From a job's arrival to its end, or to its deadline where it did not end. */
function jobExtent(row: Row, job: number): [number, number] {
  const jobs = row.lane!.jobs;
  const arrival = jobs.arrivals[job];
  const response = jobs.responses[job];
  return [arrival, arrival + (response >= 0 ? response : (row.task?.deadline_ns ?? row.task?.period_ns ?? 1_000_000))];
}

/** The findings with a place on the axis, ascending. */
function placedFindings(report: Report): Placed[] {
  return report.findings
    .flatMap((finding, index): Placed[] => {
      const run = finding.run === null ? null : report.runs[finding.run];
      return finding.time_ns === null || !run?.timeline ? [] : [{ finding, index, at: finding.time_ns - run.start_ns }];
    })
    .sort((a, b) => a.at - b.at);
}
