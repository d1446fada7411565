/** The whole recording at a glance: load over time, misses, findings, and the window to drag. */
import { h, place } from "./dom";
import { mix, Painter } from "./paint";
import type { Row } from "./rows";
import { palette } from "./theme";
import type { Report } from "./types";
import type { Viewport } from "./viewport";

const BAND = 15;

export class Minimap {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { "aria-hidden": "true" });
  private readonly frame = h("div", { class: "minimap-window" });
  private rows: Row[] = [];

  constructor(
    private readonly report: Report,
    private readonly view: Viewport,
    private readonly findings: Float64Array,
  ) {
    this.element = h("div", { class: "minimap", title: "The whole recording: drag the window, or click a place" }, this.canvas, this.frame);
    view.onChange(() => this.moveFrame());
    this.element.addEventListener("pointerdown", (event) => this.press(event));
  }

  /** Draws the load of the visible runs; called when lanes were decoded, sizes or colours changed. */
  draw(rows: Row[]): void {
    this.rows = rows;
    const width = this.element.clientWidth;
    const runs = [...new Set(rows.map((row) => row.runIndex))];
    const height = Math.max(1, runs.length) * (BAND + 3) + 8;
    const scale = Math.min(devicePixelRatio || 1, 2);
    place(this.element, { height: `${height}px` });
    this.canvas.width = Math.max(1, Math.round(width * scale));
    this.canvas.height = Math.round(height * scale);
    const context = this.canvas.getContext("2d");
    if (!context || width === 0) return;
    context.scale(scale, scale);
    const painter = new Painter(context, palette(), width);
    runs.forEach((run, i) => this.band(painter, run, 3 + i * (BAND + 3), width));
    const window = { from: this.view.first, to: this.view.last, width };
    const x = (t: number) => ((t - window.from) / (window.to - window.from)) * width;
    painter.sparse(this.findings, window, x, 3, (at) => painter.line(at, height - 6, height, painter.colours.warn, 2));
    this.moveFrame();
  }

  private band(painter: Painter, run: number, y: number, width: number): void {
    const { colours } = painter;
    const { first, last } = this.view;
    const cells = [0, 1].map(() => new Float32Array(Math.ceil(width)));
    const cpus = this.rows.filter((row) => row.runIndex === run && row.packed.kind === "cpu" && row.lane);
    const load = new Float32Array(cells[0].length);
    const foreign = new Float32Array(cells[0].length);
    for (const row of cpus) {
      row.lane!.intervals.shares(first, (last - first) / width, cells[0].length, cells);
      cells[0].forEach((share, i) => (load[i] += share / cpus.length));
      cells[1].forEach((share, i) => (foreign[i] += share / cpus.length));
    }
    const measured = this.report.runs[run].kind === "measured";
    const fill = mix(measured ? colours.measured : colours.simulated, colours.surface, 0.6);
    painter.rect(0, y + BAND, width, 1, colours.line);
    for (let i = 0; i < load.length; i++) {
      if (load[i] > 0) painter.rect(i, y + BAND * (1 - load[i]), 1, BAND * load[i], fill);
      if (foreign[i] > 0) painter.rect(i, y + BAND * (1 - load[i] - foreign[i]), 1, BAND * foreign[i], mix(colours.foreign, colours.surface, 0.3));
    }
    const window = { from: first, to: last, width };
    const x = (t: number) => ((t - first) / (last - first)) * width;
    for (const row of this.rows) {
      if (row.runIndex !== run || !row.lane) continue;
      painter.sparse(row.lane.misses, window, x, 2, (at) => painter.line(at, y, y + BAND, colours.bad, 2));
    }
  }

  private moveFrame(): void {
    const whole = this.view.last - this.view.first;
    const left = (100 * (this.view.from - this.view.first)) / whole;
    const width = (100 * this.view.span) / whole;
    place(this.frame, { left: `${left}%`, width: `${width}%` });
  }

  /** A press outside the window brings it there; then it follows the pointer. */
  private press(event: PointerEvent): void {
    const box = this.element.getBoundingClientRect();
    const whole = this.view.last - this.view.first;
    const timeAt = (x: number) => this.view.first + ((x - box.left) / box.width) * whole;
    const pressed = timeAt(event.clientX);
    let grip = pressed - this.view.from;
    if (grip < 0 || grip > this.view.span) grip = this.view.span / 2;
    const follow = (x: number) => {
      const from = timeAt(x) - grip;
      this.view.show(from, from + this.view.span);
    };
    follow(event.clientX);
    this.element.setPointerCapture(event.pointerId);
    const move = (next: PointerEvent) => follow(next.clientX);
    this.element.addEventListener("pointermove", move);
    const end = () => this.element.removeEventListener("pointermove", move);
    this.element.addEventListener("pointerup", end, { once: true });
    this.element.addEventListener("pointercancel", end, { once: true });
    event.preventDefault();
  }
}
