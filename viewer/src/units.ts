/** Times with units, and counts. */

export interface Unit {
  name: string;
  ns: number;
}

const UNITS: Unit[] = [
  { name: "s", ns: 1e9 },
  { name: "ms", ns: 1e6 },
  { name: "us", ns: 1e3 },
  { name: "ns", ns: 1 },
];

/** The largest unit that `ns` reaches. */
export function unitFor(ns: number): Unit {
  const size = Math.abs(ns);
  return UNITS.find((unit) => size >= unit.ns) ?? UNITS[3];
}

/** A single time in the unit that it reaches when it is rounded, to `digits` significant digits, without trailing zeros. */
export function time(ns: number, digits = 4): string {
  const own = UNITS.indexOf(unitFor(ns));
  const reaches = own > 0 && Math.abs(Number(rounded(ns, UNITS[own], digits))) >= 1000;
  const unit = UNITS[reaches ? own - 1 : own];
  const text = rounded(ns, unit, digits);
  return `${text.includes(".") ? text.replace(/\.?0+$/, "") : text} ${unit.name}`;
}

function rounded(ns: number, unit: Unit, digits: number): string {
  const value = ns / unit.ns;
  const whole = Math.max(1, Math.floor(Math.log10(Math.abs(value) || 1)) + 1);
  return value.toFixed(Math.min(3, Math.max(0, unit.ns === 1 ? 0 : digits - whole)));
}

/** All digits: for tooltips, where nothing may be rounded away. */
export function exactTime(ns: number): string {
  const unit = unitFor(ns);
  const text = (ns / unit.ns).toFixed(Math.round(Math.log10(unit.ns)));
  return `${text.includes(".") ? text.replace(/\.?0+$/, "") : text} ${unit.name}`;
}

/** Step between ticks that gives at most `most` of them: 1, 2 or 5 times a power of ten. */
export function tickStep(span: number, most: number): number {
  const rough = Math.max(span / Math.max(1, most), 1e-9);
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((f) => f * power >= rough) ?? 10;
  return factor * power;
}

/** Ticks inside a range, with the step. */
export function ticks(from: number, to: number, most: number): { at: number[]; step: number } {
  const step = tickStep(to - from, most);
  const at: number[] = [];
  for (let i = Math.ceil(from / step); i * step <= to && at.length < 1000; i++) at.push(i * step);
  return { at, step };
}

/**
 * The instant that labels count from: zero, or where the window is narrow and far from zero, the last whole
 * larger unit, so that labels stay short.
 */
export function tickBase(from: number, to: number, unit: Unit): number {
  const larger = unit.ns * 1000;
  return from >= larger && to - from < larger && unit.ns < 1e9 ? Math.floor(from / larger) * larger : 0;
}

/** The label of a tick: the axis's unit, decimals as the step needs them. */
export function tickLabel(ns: number, step: number, unit: Unit): string {
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / unit.ns) - 1e-9));
  return `${(ns / unit.ns).toFixed(Math.min(decimals, 9))} ${unit.name}`;
}

/** A count with commas between groups of three, as the closing line has it. */
export function count(n: number): string {
  return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A count in at most four characters: for a mark. */
export function compact(n: number): string {
  if (n < 1000) return String(n);
  const [unit, size]: [string, number] = n < 1e6 ? ["k", 1e3] : ["M", 1e6];
  const value = n / size;
  return `${value < 10 ? Math.floor(value * 10) / 10 : Math.floor(value)}${unit}`;
}

/** A share as percent, with as many digits as it takes to see it. */
export function percent(share: number): string {
  if (share === 0 || share === 1) return `${share * 100} %`;
  const digits = Math.max(0, Math.ceil(-Math.log10(share * 100)) + (share < 0.01 ? 0 : 1));
  return `${(share * 100).toFixed(Math.min(digits, 8))} %`;
}
