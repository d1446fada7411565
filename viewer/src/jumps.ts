/** Places worth going to: the worst job, the next miss, the next finding, the next job. */
import type { Row } from "./rows";
import { lowerBound, upperBound } from "./search";

/** The job with the longest response of these rows, measured against its deadline, else its bound. */
export function worst(rows: Row[]): { row: Row; job: number } | null {
  let best: { row: Row; job: number; weight: number } | null = null;
  for (const row of rows) {
    if (!row.lane || row.lane.kind !== "task") continue;
    const job = row.lane.worst;
    if (job < 0) continue;
    const scale = row.task?.deadline_ns ?? row.task?.bound_ns ?? 1;
    const weight = row.lane.jobs.responses[job] / scale;
    if (!best || weight > best.weight) best = { row, job, weight };
  }
  return best;
}

/** The miss after (or before) an instant among these rows, round the end. */
export function nextMiss(rows: Row[], after: number, forward: boolean): { row: Row; at: number } | null {
  const all = rows.flatMap((row) => {
    const misses = row.lane?.misses;
    if (!misses || misses.length === 0) return [];
    const i = forward ? upperBound(misses, after) : lowerBound(misses, after) - 1;
    const wrapped = i < 0 ? misses.length - 1 : i >= misses.length ? 0 : i;
    return [{ row, at: misses[wrapped] }];
  });
  const distance = (at: number) => (forward ? at - after : after - at);
  const rank = (at: number) => (distance(at) > 0 ? distance(at) : distance(at) + 2 ** 53);
  return all.sort((a, b) => rank(a.at) - rank(b.at))[0] ?? null;
}

/** The job whose deadline passed at `at`. */
export function jobOfMiss(row: Row, at: number): number {
  const jobs = row.lane?.jobs;
  if (!jobs) return -1;
  const deadline = row.task?.deadline_ns ?? 0;
  const i = lowerBound(jobs.arrivals, at - deadline);
  return i < jobs.arrivals.length && jobs.arrivals[i] + deadline <= at ? i : i - 1;
}
