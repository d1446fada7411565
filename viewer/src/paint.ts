/**
 * Draws rows on a canvas. What lies in a window is drawn interval by interval while that takes fewer shapes than
 * about a third of the width in pixels; beyond, each pixel column shows the exact shares of its time. Either way
 * the number of shapes depends on the size of the canvas, never on the number of events.
 */
import type { Intervals } from "./intervals";
import { Mark, type Lane, Served, State, Taken } from "./lane";
import { type Row, ROW } from "./rows";
import { lowerBound, upperBound } from "./search";
import { compact } from "./units";
import type { Palette } from "./theme";

export interface Window {
  from: number;
  to: number;
  width: number;
}

const INSET = 5;
/** The least width of an interval, in pixels. */
const LEAST = 0.12;
/** Pixels a unit of height in rows of shares. */
const FINE = 2;

interface Sheet {
  canvas: HTMLCanvasElement;
  context: CanvasRenderingContext2D;
  image: ImageData;
  pixels: Uint32Array;
}

/** Images that rows of shares are built in, kept from one frame to the next. */
export class Sheets {
  private readonly known = new Map<number, Sheet>();

  /** An empty image for the row at this place. */
  take(key: number, width: number, height: number): Sheet {
    const old = this.known.get(key);
    if (old && old.image.width === width && old.image.height === height) {
      old.pixels.fill(0);
      return old;
    }
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    // In main memory: it is written in full for every frame.
    const context = canvas.getContext("2d", { willReadFrequently: true })!;
    const image = new ImageData(width, height);
    const sheet = { canvas, context, image, pixels: new Uint32Array(image.data.buffer) };
    this.known.set(key, sheet);
    return sheet;
  }
}

export class Painter {
  /** Shapes drawn since the last reset. */
  primitives = 0;
  /** The counts of missed deadlines that were drawn as numbers. */
  readonly counted: number[] = [];
  private readonly patterns = new Map<string, CanvasPattern | string>();
  private cells: Float32Array[] = [];

  constructor(
    readonly context: CanvasRenderingContext2D,
    readonly colours: Palette,
    private readonly width: number,
    private readonly sheets = new Sheets(),
  ) {
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
  }

  rect(x: number, y: number, width: number, height: number, fill: string | CanvasPattern): void {
    this.context.fillStyle = fill;
    this.context.fillRect(x, y, width, height);
    this.primitives++;
  }

  line(x: number, y0: number, y1: number, colour: string, width = 1): void {
    this.rect(Math.round(x - width / 2), y0, width, y1 - y0, colour);
  }

  text(text: string, x: number, y: number, colour: string, align: CanvasTextAlign = "left"): void {
    this.context.fillStyle = colour;
    this.context.textAlign = align;
    this.context.fillText(text, x, y);
    this.primitives++;
  }

  shape(points: [number, number][], fill: string): void {
    const { context } = this;
    context.fillStyle = fill;
    context.beginPath();
    points.forEach(([x, y], i) => (i === 0 ? context.moveTo(x, y) : context.lineTo(x, y)));
    context.closePath();
    context.fill();
    this.primitives++;
  }

  /** A row: what its run does not cover, intervals, marks. A row that is tall for its name's sake draws in its middle. */
  row(whole: Row, view: Window): void {
    const row = whole.height === ROW ? whole : { ...whole, y: whole.y + Math.floor((whole.height - ROW) / 2), height: ROW };
    const x = (t: number) => ((t - view.from) / (view.to - view.from)) * view.width;
    const line = row.run.timeline;
    this.rect(0, whole.y + whole.height - 1, view.width, 1, this.colours.line);
    if (line) {
      const [start, end] = [x(line.from_ns), x(line.to_ns)];
      const faint = this.hatch(this.colours.line, 0.55);
      if (start > 0) this.rect(0, row.y, Math.min(start, view.width), row.height - 1, faint);
      if (end < view.width) this.rect(Math.max(0, end), row.y, view.width - Math.max(0, end), row.height - 1, faint);
    }
    if (!row.lane) return;
    if (row.lane.levels) return this.budget(row, row.lane, view);
    const [first, last] = row.lane.intervals.range(view.from, view.to);
    if (last - first <= view.width / 3) this.each(row, row.lane, view, x, first, last);
    else this.shares(row, row.lane.intervals, view);
    if (row.lane.kind === "task") this.jobs(row, row.lane, view, x);
    this.marks(row, row.lane, view, x);
  }

  private base(row: Row): string {
    return row.runKind === "simulated" ? this.colours.simulated : this.colours.measured;
  }

  /** Every interval of its own. */
  private each(row: Row, lane: Lane, view: Window, x: (t: number) => number, first: number, last: number): void {
    const { starts, ends, codes, values } = lane.intervals;
    for (let i = first; i < last; i++) {
      const from = Math.max(-2, x(starts[i]));
      const to = Math.min(view.width + 2, x(ends[i]));
      // Part of a pixel is drawn as strong as that part: its ink is its share. What is nearly nothing still shows.
      const width = Math.max(to - from, LEAST);
      if (lane.kind === "device") this.device(row, codes[i], values[i], from, width);
      else if (lane.kind === "task") this.state(row, codes[i], values[i], from, width);
      else if (lane.kind === "cpu") this.occupant(row, codes[i], values[i], from, width);
      else this.taken(row, codes[i], values[i], from, width);
    }
  }

  private state(row: Row, code: number, job: number, x: number, width: number): void {
    const base = row.y + row.height - INSET;
    const height = row.height - 2 * INSET;
    if (code === State.Executing) {
      this.rect(x, base - height, width, height, this.base(row));
      this.label(`#${job}`, x, width, base - height / 2, this.colours.surface, "left");
    } else if (code === State.Ready) {
      this.rect(x, base - 3, width, 3, this.colours.muted);
    } else if (code === State.Suspended) {
      this.rect(x, base - height * 0.55, width, 1.5, this.base(row));
      this.rect(x, base - 1.5, width, 1.5, this.base(row));
    } else {
      this.rect(x, base - height * 0.55, width, height * 0.55, this.hatch(this.base(row), 0.75));
      this.rect(x, base - 1.5, width, 1.5, this.base(row));
    }
  }

  private occupant(row: Row, code: number, value: number, x: number, width: number): void {
    const y = row.y + INSET;
    const height = row.height - 2 * INSET;
    if (code === 0) {
      // Pale: whether it stands in a job's way is for the kernel's lane to say.
      this.rect(x, y, width, height, mix(this.colours.foreign, this.colours.surface, 0.3));
      this.label(row.run.timeline?.labels[value] ?? "", x, width, y + height / 2, this.colours.ink);
      return;
    }
    const strength = shade(code - 1);
    this.rect(x, y, width, height, mix(this.base(row), this.colours.surface, strength));
    const ink = strength > 0.8 ? this.colours.surface : this.colours.ink;
    this.label(row.tasks[code - 1] ?? "", x, width, y + height / 2, ink);
  }

  private taken(row: Row, code: number, value: number, x: number, width: number): void {
    if (code === Taken.Background) {
      const low = row.y + row.height - INSET;
      this.rect(x, low - 5, width, 5, mix(this.colours.foreign, this.colours.surface, 0.3));
      return;
    }
    const part = code === Taken.Thread ? 1 : code === Taken.Steal ? 1 : code === Taken.Softirq ? 0.6 : 0.4;
    const base = row.y + row.height - INSET;
    const height = (row.height - 2 * INSET) * part;
    const fill = code === Taken.Steal ? this.hatch(this.colours.bad, 1) : this.colours.foreign;
    this.rect(x, base - height, width, height, fill);
    if (part === 1) this.label(row.run.timeline?.labels[value] ?? "", x, width, base - height / 2, this.colours.surface);
  }

  private device(row: Row, code: number, waiting: number, x: number, width: number): void {
    const base = row.y + row.height - INSET;
    const height = row.height - 2 * INSET;
    if (code === Served.Handled) this.rect(x, base - height, width, height, this.colours.foreign);
    else this.rect(x, base - height * 0.55, width, height * 0.55, this.hatch(this.base(row), 0.75));
    if (waiting > 1) this.label(String(waiting), x, width, base - height / 2, this.colours.ink);
  }

  /** What is left of a budget: the mean of each pixel's time as height; none in red at the foot. */
  private budget(row: Row, lane: Lane, view: Window): void {
    const { levels, intervals } = lane;
    const count = Math.ceil(view.width);
    const step = (view.to - view.from) / view.width;
    const [base, height] = [row.y + row.height - 3, row.height - 6];
    const cells = this.buffers(intervals.classes, count);
    intervals.shares(view.from, step, count, cells);
    const [fill, edge] = [mix(this.base(row), this.colours.surface, 0.35), this.base(row)];
    const { context } = this;
    context.beginPath();
    for (let x = 0; x < count; x++) {
      const from = view.from + x * step;
      const known = cells[0][x] + cells[1][x] + cells[2][x];
      // At the end of the record a pixel is only partly known.
      const level = known > 0 ? levels!.mean(from, from + step) / known / Math.max(1, row.budget) : 0;
      const top = base - height * Math.min(1, level);
      if (level > 0) this.rect(x, top, 1, base - top, fill);
      if (cells[2][x] > 0) {
        context.globalAlpha = Math.max(LEAST, Math.min(1, cells[2][x]));
        this.rect(x, base - 2, 1, 2, this.colours.bad);
        context.globalAlpha = 1;
      }
      if (known > 0 && x > 0) context.lineTo(x + 0.5, top);
      else context.moveTo(x + 0.5, top);
    }
    context.strokeStyle = edge;
    context.lineWidth = 1.2;
    context.stroke();
    this.primitives += count;
  }

  private label(text: string, x: number, width: number, y: number, colour: string, align: CanvasTextAlign = "center"): void {
    const [from, to] = [Math.max(x, 0), Math.min(x + width, this.width)];
    if (text === "" || to - from < 22) return;
    const size = this.context.measureText(text).width;
    if (size < to - from - 8) this.text(text, align === "left" ? from + 5 : (from + to) / 2, y + 0.5, colour, align);
  }

  /** Pixel columns with the share of each class, stacked. */
  private shares(row: Row, intervals: Intervals, view: Window): void {
    const count = Math.ceil(view.width);
    const cells = this.buffers(intervals.classes, count);
    intervals.shares(view.from, (view.to - view.from) / view.width, count, cells);
    const fills = this.classFills(row).map(packed);
    const [base, height] = [row.y + row.height - INSET, row.height - 2 * INSET];
    const rise = height * FINE;
    const sheet = this.sheets.take(row.y, count, rise);
    const { pixels } = sheet;
    for (let x = 0; x < count; x++) {
      let y = rise;
      for (let c = 0; c < intervals.classes && y > 0; c++) {
        const share = cells[c][x];
        if (share <= 0) continue;
        // A share too small for one pixel still shows as one.
        const top = Math.max(0, y - Math.max(1, Math.round(share * rise)));
        while (y > top) pixels[--y * count + x] = fills[c];
      }
    }
    sheet.context.putImageData(sheet.image, 0, 0);
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(sheet.canvas, 0, base - height, count, height);
    this.primitives += count;
  }

  private classFills(row: Row): string[] {
    const own = this.base(row);
    if (row.packed.kind === "task") return [own, mix(own, this.colours.surface, 0.42), mix(this.colours.muted, this.colours.surface, 0.5)];
    if (row.packed.kind === "device") return [this.colours.foreign, mix(own, this.colours.surface, 0.42)];
    if (row.packed.kind === "cpu") return [mix(own, this.colours.surface, 0.8), mix(this.colours.foreign, this.colours.surface, 0.3)];
    const foreign = this.colours.foreign;
    return [foreign, mix(foreign, this.colours.surface, 0.7), mix(foreign, this.colours.surface, 0.5), this.colours.bad, mix(foreign, this.colours.surface, 0.22)];
  }

  private buffers(classes: number, count: number): Float32Array[] {
    while (this.cells.length < classes) this.cells.push(new Float32Array(0));
    if (this.cells[0].length < count) this.cells = this.cells.map(() => new Float32Array(count));
    return this.cells.slice(0, classes).map((cell) => cell.subarray(0, count));
  }

  /** Releases as arrows up, deadlines as arrows down, while there is room for them. */
  private jobs(row: Row, lane: Lane, view: Window, x: (t: number) => number): void {
    const { arrivals } = lane.jobs;
    const deadline = row.task?.deadline_ns ?? null;
    const from = lowerBound(arrivals, view.from - (deadline ?? 0));
    const to = lowerBound(arrivals, view.to);
    if (to - from > view.width / 26) return;
    const [top, base] = [row.y + 2, row.y + row.height - 2];
    for (let i = from; i < to; i++) {
      const ready = x(arrivals[i] + lane.jobs.late[i]);
      // Arrived and not noticed yet: dots, where they show.
      for (let at = x(arrivals[i]) + 3; at < ready - 1 && ready - at < view.width; at += 4) this.rect(at, base - 4, 2, 2, this.colours.muted);
      if (deadline !== null) this.arrow(x(arrivals[i] + deadline), top, base, this.colours.bad, false);
      this.arrow(x(arrivals[i]), top, base, this.colours.ink, true);
    }
  }

  private arrow(x: number, top: number, base: number, colour: string, up: boolean): void {
    if (x < -5 || x > this.width + 5) return;
    this.line(x, top, base, colour);
    const [tip, back] = up ? [top - 1, top + 5] : [base + 1, base - 5];
    this.shape([[x, tip], [x - 3.5, back], [x + 3.5, back]], colour);
  }

  private marks(row: Row, lane: Lane, view: Window, x: (t: number) => number): void {
    this.points(row, lane, view, x);
    this.sparse(lane.alarms, view, x, 6, (at) => this.triangle(at, row.y + 9, this.colours.warn));
    this.clusters(lane.misses, view, x, 24, (at, n) => (n === 1 ? this.cross(at, row) : this.badge(at, n, row)));
  }

  /** Preemption points: a notch; with a head where somebody more important was waiting. */
  private points(row: Row, lane: Lane, view: Window, x: (t: number) => number): void {
    const { times, kinds } = lane.marks;
    const from = lowerBound(times, view.from);
    const to = lowerBound(times, view.to);
    if (to - from > view.width / 16) return;
    for (let i = from; i < to; i++) {
      const at = x(times[i]);
      if (kinds[i] === Mark.PreemptionPoint) {
        this.line(at, row.y + 3, row.y + row.height - 3, this.colours.surface, 3);
        this.line(at, row.y + 3, row.y + row.height - 3, this.colours.ink);
      } else if (kinds[i] === Mark.Yield || kinds[i] === Mark.VainYield) {
        const fill = kinds[i] === Mark.Yield ? this.colours.ink : this.colours.muted;
        this.shape([[at, row.y + 1], [at + 4, row.y + 5], [at, row.y + 9], [at - 4, row.y + 5]], fill);
      } else if (kinds[i] === Mark.Lost || kinds[i] === Mark.ModeChange) {
        this.line(at, row.y, row.y + row.height, this.colours.warn, 2);
      }
    }
  }

  /** Marks that must never disappear: at most one in `apart` pixels, found by jumping. */
  sparse(times: Float64Array, view: Window, x: (t: number) => number, apart: number, draw: (x: number, index: number) => void): void {
    const step = (apart / view.width) * (view.to - view.from);
    let i = lowerBound(times, view.from);
    while (i < times.length && times[i] <= view.to) {
      draw(x(times[i]), i);
      i = lowerBound(times, times[i] + step, i + 1);
    }
  }

  /** Instants closer than `apart` pixels together, with how many they are. */
  clusters(times: Float64Array, view: Window, x: (t: number) => number, apart: number, draw: (x: number, count: number) => void): void {
    const step = (apart / view.width) * (view.to - view.from);
    let i = lowerBound(times, view.from);
    const end = upperBound(times, view.to);
    while (i < end) {
      const next = Math.min(end, lowerBound(times, times[i] + step, i + 1));
      draw(x((times[i] + times[next - 1]) / 2), next - i);
      i = next;
    }
  }

  /** How many deadlines were missed here. */
  private badge(x: number, n: number, row: Row): void {
    const { context } = this;
    const text = compact(n);
    this.counted.push(n);
    const width = Math.max(15, context.measureText(text).width + 6);
    const left = Math.min(Math.max(x - width / 2, 0), this.width - width);
    const y = row.y + row.height / 2;
    context.fillStyle = this.colours.bad;
    context.beginPath();
    context.roundRect(left, y - 7.5, width, 15, 4);
    context.fill();
    this.text(text, left + width / 2, y + 0.5, this.colours.surface, "center");
    this.primitives++;
  }

  private triangle(x: number, y: number, colour: string): void {
    this.shape([[x, y - 6], [x + 5, y + 3], [x - 5, y + 3]], colour);
  }

  private cross(x: number, row: Row): void {
    const { context } = this;
    const y = row.y + row.height / 2;
    this.rect(x - 6, y - 6, 12, 12, this.colours.surface);
    context.strokeStyle = this.colours.bad;
    context.lineWidth = 2.5;
    context.beginPath();
    context.moveTo(x - 4, y - 4);
    context.lineTo(x + 4, y + 4);
    context.moveTo(x + 4, y - 4);
    context.lineTo(x - 4, y + 4);
    context.stroke();
    context.strokeRect(x - 6.5, y - 6.5, 13, 13);
    this.primitives += 2;
  }

  /** Diagonal lines, so that "waiting" differs from "executing" by more than its colour. */
  private hatch(colour: string, strength: number): CanvasPattern | string {
    const key = `${colour}/${strength}`;
    const known = this.patterns.get(key);
    if (known) return known;
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const pen = tile.getContext("2d");
    if (!pen) return colour;
    pen.globalAlpha = strength * 0.28;
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 6, 6);
    pen.globalAlpha = strength;
    pen.strokeStyle = colour;
    pen.lineWidth = 1.1;
    for (const shift of [-6, 0, 6]) {
      pen.moveTo(shift - 1, 7);
      pen.lineTo(shift + 7, -1);
    }
    pen.stroke();
    const pattern = this.context.createPattern(tile, "repeat") ?? colour;
    this.patterns.set(key, pattern);
    return pattern;
  }
}

/** Four strengths in turn for the tasks of a processor. */
function shade(task: number): number {
  return [1, 0.68, 0.45, 0.26][task % 4];
}

/** `strength` of one colour over another; both `#rrggbb`. */
export function mix(colour: string, ground: string, strength: number): string {
  const part = (text: string, i: number) => parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16);
  const parts = [0, 1, 2].map((i) => Math.round(part(colour, i) * strength + part(ground, i) * (1 - strength)));
  return `#${parts.map((p) => p.toString(16).padStart(2, "0")).join("")}`;
}

/** A colour as a pixel of an image, on the little-endian machines that browsers run on. */
function packed(colour: string): number {
  const rgb = parseInt(colour.slice(1), 16);
  return (0xff00_0000 | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
}
