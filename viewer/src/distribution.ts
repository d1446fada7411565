/** What the distribution charts draw: tails and rebinned histograms of response times. */

export type Bucket = [lower: number, count: number];

export interface Step {
  x: number;
  /** Share of jobs whose response is at least x. */
  share: number;
}

/** The complementary distribution as steps, the greatest response last. */
export function tail(buckets: Bucket[]): Step[] {
  const total = buckets.reduce((sum, [, n]) => sum + n, 0);
  let above = total;
  return buckets.map(([x, n]) => {
    const share = above / total;
    above -= n;
    return { x, share };
  });
}

/** Of steps closer than `width`, only the first: what a pixel can show. The last always stays. */
export function thin(steps: Step[], width: number): Step[] {
  let last = -Infinity;
  return steps.filter((step, i) => {
    if (i < steps.length - 1 && step.x - last < width) return false;
    last = step.x;
    return true;
  });
}

/** Shares of jobs in `count` equal cells from `from` to `to`; what lies outside goes to the outermost cell. */
export function rebin(buckets: Bucket[], from: number, to: number, count: number): Float64Array {
  const cells = new Float64Array(count);
  let total = 0;
  for (const [x, n] of buckets) {
    const cell = Math.floor(((x - from) / (to - from)) * count);
    cells[Math.min(count - 1, Math.max(0, cell))] += n;
    total += n;
  }
  if (total > 0) for (let i = 0; i < count; i++) cells[i] /= total;
  return cells;
}

/** The range of response times to show: all responses and the bound; from zero unless they lie far from it. */
export function domain(least: number, most: number, deadline: number | null): [number, number] {
  const from = least < 0.4 * most ? 0 : least - 0.08 * (most - least || most * 0.1);
  let to = most + 0.06 * (most - from || most);
  if (deadline !== null && deadline > to && deadline <= most + 0.6 * (most - from)) {
    to = deadline + 0.06 * (deadline - from);
  }
  return [Math.max(0, from), to];
}
