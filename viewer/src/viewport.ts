/** The visible window of the time axis: zooming and panning that never leave the recorded range. */

/** The narrowest window, in nanoseconds. */
const NARROWEST = 200;

export class Viewport {
  from: number;
  to: number;
  private readonly listeners: (() => void)[] = [];

  constructor(
    readonly first: number,
    readonly last: number,
  ) {
    this.from = first;
    this.to = last;
  }

  get span(): number {
    return this.to - this.from;
  }

  get isWhole(): boolean {
    return this.from <= this.first && this.to >= this.last;
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Shows the window, pushed back inside the recorded range. */
  show(from: number, to: number): void {
    const whole = this.last - this.first;
    const span = Math.min(whole, Math.max(to - from, Math.min(NARROWEST, whole)));
    const middle = (from + to) / 2;
    let start = middle - span / 2;
    start = Math.min(Math.max(start, this.first), this.last - span);
    if (start === this.from && start + span === this.to) return;
    this.from = start;
    this.to = start + span;
    for (const listener of this.listeners) listener();
  }

  /** Makes the window `factor` times as wide while `fixed` stays where it is. */
  zoom(factor: number, fixed = (this.from + this.to) / 2): void {
    const span = Math.max(Math.min(this.span * factor, this.last - this.first), NARROWEST);
    const share = (fixed - this.from) / this.span;
    const from = fixed - share * span;
    this.show(from, from + span);
  }

  /** Moves the window by a share of its width. */
  pan(share: number): void {
    const distance = share * this.span;
    this.show(this.from + distance, this.to + distance);
  }

  /** Shows everything. */
  fit(): void {
    this.show(this.first, this.last);
  }
}
