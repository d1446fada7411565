/**
 * A server's remaining budget over time: it stays, falls by a nanosecond each nanosecond, or is gone. The time integral up to each
 * interval is summed once, so that the mean of any window is two binary searches, however many intervals lie inside.
 */
import type { Intervals } from "./intervals";
import { Budget } from "./lane";
import { upperBound } from "./search";

export class Levels {
  private readonly before: Float64Array;

  constructor(private readonly intervals: Intervals) {
    this.before = new Float64Array(intervals.length + 1);
    for (let i = 0; i < intervals.length; i++) this.before[i + 1] = this.before[i] + this.area(i, intervals.ends[i]);
  }

  /** What is left at an instant; null where nothing is on record. */
  at(time: number): number | null {
    const i = this.intervals.at(time);
    return i < 0 ? null : this.levelIn(i, time);
  }

  /** The mean from `from` to `to`. */
  mean(from: number, to: number): number {
    return (this.upTo(to) - this.upTo(from)) / (to - from);
  }

  private levelIn(i: number, time: number): number {
    const { starts, codes, values } = this.intervals;
    if (codes[i] === Budget.Gone) return 0;
    return codes[i] === Budget.Used ? Math.max(0, values[i] - (time - starts[i])) : values[i];
  }

  /** The integral of interval `i` up to `time`. */
  private area(i: number, time: number): number {
    const { starts, values } = this.intervals;
    const long = time - starts[i];
    return ((this.levelIn(i, starts[i]) + this.levelIn(i, time)) / 2) * (this.intervals.codes[i] === Budget.Used ? Math.min(long, values[i]) : long);
  }

  private upTo(time: number): number {
    const i = upperBound(this.intervals.starts, time) - 1;
    return i < 0 ? 0 : this.before[i] + this.area(i, Math.min(time, this.intervals.ends[i]));
  }
}
