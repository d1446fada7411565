/** What lies at a place of the timeline, in words: for the readout, the tooltip and screen readers. */
import { Budget, type Lane, NO_JOB, Served, State, Taken } from "./lane";
import type { Row } from "./rows";
import { upperBound } from "./search";
import { count, exactTime, time } from "./units";

export const runWord = (row: Row) => (row.runKind === "simulated" ? "simulated" : "measured");

/** The lane as a whole. */
export function laneWords(row: Row): string {
  const lane = row.lane;
  const parts = [`${row.name}, ${runWord(row)}`];
  if (!lane) return `${parts[0]}: not decoded yet`;
  if (lane.kind === "task") {
    parts.push(`${count(lane.jobs.numbers.length)} jobs`);
    const missed = lane.misses.length;
    parts.push(missed === 0 ? "no missed deadline" : missed === 1 ? "1 missed deadline" : `${count(missed)} missed deadlines`);
  } else if (lane.kind === "server") {
    parts.push(`${time(row.budget)} when full`);
  } else {
    parts.push(`${count(lane.intervals.length)} intervals`);
  }
  return parts.join(", ");
}

/** The row's state at an instant. */
export function placeWords(row: Row, at: number): string {
  const lane = row.lane;
  if (!lane) return "";
  const index = lane.intervals.at(at);
  const line = row.run.timeline;
  if (line && (at < line.from_ns || at > line.to_ns)) return "not recorded";
  if (lane.levels) {
    const left = lane.levels.at(at);
    if (left === null) return "not on record";
    const doing = lane.intervals.codes[index] === Budget.Used ? ", being used" : "";
    return left === 0 ? "no budget left" : `${exactTime(Math.round(left))} of ${time(row.budget)} left${doing}`;
  }
  if (index < 0) return lane.kind === "task" ? "no job pending" : lane.kind === "cpu" ? "idle" : lane.kind === "device" ? "nobody waits" : "nothing";
  const { starts, ends, codes, values } = lane.intervals;
  const long = `for ${time(ends[index] - starts[index])}`;
  if (lane.kind === "device") {
    const waiting = values[index] === 0 ? "" : values[index] === 1 ? "1 job waits" : `${count(values[index])} jobs wait`;
    return [codes[index] === Served.Handled ? "its handler executes" : "", waiting].filter(Boolean).join(", ") + ` ${long}`;
  }
  const label = row.run.timeline?.labels[values[index]] ?? "unknown";
  if (lane.kind === "cpu") {
    const name = codes[index] === 0 ? label : (row.tasks[codes[index] - 1] ?? "unknown task");
    const job = codes[index] !== 0 && values[index] < NO_JOB ? `, job ${count(values[index])}` : "";
    return `${name}${job} ${long}`;
  }
  if (codes[index] === Taken.Background && lane.kind === "kernel") return `${label}, in nobody's way, ${long}`;
  if (lane.kind === "kernel") return `${codes[index] === Taken.Thread ? "foreign thread " : ""}${label} ${long}`;
  return `job ${count(values[index])} ${STATES[codes[index]] ?? "pending"} ${long}`;
}

const STATES: Record<number, string> = {
  [State.Executing]: "executing",
  [State.Ready]: "ready, waiting",
  [State.Preempted]: "preempted",
  [State.Yielded]: "gave way at a preemption point",
  [State.Suspended]: "suspended itself",
};

/** The job of a task lane that is pending at an instant (index), else the one that arrived last. */
export function jobAt(lane: Lane, at: number): number {
  const interval = lane.intervals.at(at);
  if (interval >= 0) {
    const number = lane.intervals.values[interval];
    const near = upperBound(lane.jobs.arrivals, at) - 1;
    for (let i = near; i >= 0 && i > near - 64; i--) if (lane.jobs.numbers[i] === number) return i;
  }
  return upperBound(lane.jobs.arrivals, at) - 1;
}

/** A job with all its numbers. */
export function jobWords(row: Row, index: number): string {
  const lane = row.lane;
  if (!lane || index < 0 || index >= lane.jobs.numbers.length) return laneWords(row);
  const { numbers, arrivals, late, responses, executed } = lane.jobs;
  const parts = [`${row.name}, ${runWord(row)}, job ${count(numbers[index])}`, `arrived at ${exactTime(arrivals[index])}`];
  if (late[index] > 0) parts.push(`ready ${time(late[index])} later`);
  const response = responses[index];
  if (response < 0) {
    parts.push("not finished");
    return parts.join(" · ");
  }
  parts.push(`response ${exactTime(response)}`, `executed ${time(executed[index])}`);
  const bound = row.task?.bound_ns ?? null;
  const deadline = row.task?.deadline_ns ?? null;
  if (bound !== null) parts.push(response > bound ? `${time(response - bound)} above the bound` : `${time(bound - response)} below the bound`);
  if (deadline !== null && response > deadline) parts.push(`deadline missed by ${time(response - deadline)}`);
  return parts.join(" · ");
}
