/**
 * Intervals of a lane, ready for any zoom: they are disjoint and ascending, and for each class of interval the
 * time that it has taken up to each interval is summed up front. The share of a class in any window is then two
 * binary searches and a subtraction, exact, however many intervals lie inside: no pyramid of levels is needed,
 * and a redraw costs a number of steps that depends on the width in pixels alone (times a logarithm).
 */
import { gallop, upperBound } from "./search";

export class Intervals {
  /** Per class: time taken before interval i; one entry more than there are intervals. */
  private readonly before: Float64Array[];

  constructor(
    readonly starts: Float64Array,
    readonly ends: Float64Array,
    readonly codes: Uint16Array,
    readonly values: Float64Array,
    private readonly classOf: (code: number) => number,
    readonly classes: number,
  ) {
    const count = starts.length;
    this.before = Array.from({ length: classes }, () => new Float64Array(count + 1));
    const total = new Float64Array(classes);
    for (let i = 0; i < count; i++) {
      const which = classOf(codes[i]);
      if (which >= 0 && which < classes) total[which] += ends[i] - starts[i];
      for (let c = 0; c < classes; c++) this.before[c][i + 1] = total[c];
    }
  }

  get length(): number {
    return this.starts.length;
  }

  /** The intervals that overlap the window, as a range of indices. */
  range(from: number, to: number): [first: number, end: number] {
    let first = upperBound(this.starts, from) - 1;
    if (first < 0 || this.ends[first] <= from) first++;
    return [first, upperBound(this.starts, to)];
  }

  /** The interval that holds `time`, or -1. */
  at(time: number): number {
    const index = upperBound(this.starts, time) - 1;
    return index >= 0 && time < this.ends[index] ? index : -1;
  }

  /** How much time class `which` takes from `from` to `to`. */
  taken(which: number, from: number, to: number): number {
    return this.upTo(which, to, upperBound(this.starts, to)) - this.upTo(which, from, upperBound(this.starts, from));
  }

  /**
   * The share of each class in each of `count` cells of width `width` from `from` on, into
   * `out[class][cell]`, in one pass over the cells.
   */
  shares(from: number, width: number, count: number, out: Float32Array[]): void {
    const { starts, ends, classes } = this;
    let next = upperBound(starts, from);
    const last = new Float64Array(classes);
    for (let c = 0; c < classes; c++) last[c] = this.upTo(c, from, next);
    for (let cell = 0; cell < count; cell++) {
      const time = from + (cell + 1) * width;
      next = gallop(starts, time, Math.max(0, next - 1));
      const open = next - 1;
      const cut = open >= 0 && ends[open] > time ? ends[open] - time : 0;
      const cutClass = cut > 0 ? this.classOf(this.codes[open]) : -1;
      for (let c = 0; c < classes; c++) {
        const sum = this.before[c][next] - (c === cutClass ? cut : 0);
        out[c][cell] = (sum - last[c]) / width;
        last[c] = sum;
      }
    }
  }

  /** Time of class `which` up to `time`, where `next` is the first interval that starts after it. */
  private upTo(which: number, time: number, next: number): number {
    const sum = this.before[which][next];
    const current = next - 1;
    if (current < 0 || this.ends[current] <= time || this.classOf(this.codes[current]) !== which) return sum;
    return sum - (this.ends[current] - time);
  }
}
