/** A lane, decoded when it is first needed. */
import { bytes, sums, unpack, values } from "./columns";
import { Intervals } from "./intervals";
import { Levels } from "./levels";
import type { LaneKind, PackedLane } from "./types";

/** States of a task lane's intervals. */
export const enum State {
  Executing = 1,
  Ready = 2,
  Preempted = 3,
  Yielded = 4,
  Suspended = 5,
}

/** Classes of a kernel lane's intervals. */
export const enum Taken {
  Thread = 1,
  Interrupt = 2,
  Softirq = 3,
  Steal = 4,
  Background = 5,
}

/** What a server's budget does. */
export const enum Budget {
  Used = 1,
  Kept = 2,
  Gone = 3,
}

/** Classes of a device lane's intervals. */
export const enum Served {
  Handled = 1,
  Awaited = 2,
}

/** Kinds of marks: the numbers of the trace's record kinds. */
export const enum Mark {
  PreemptionPoint = 5,
  Yield = 6,
  Miss = 9,
  Overrun = 10,
  Enforcement = 11,
  VainWait = 12,
  VainYield = 13,
  Skip = 14,
  ModeChange = 15,
  Starve = 40,
  Lost = 48,
}

/** Job numbers from here on mean "no job" (2^64 - 1, rounded). */
export const NO_JOB = 2 ** 63;

export interface Jobs {
  numbers: Float64Array;
  arrivals: Float64Array;
  /** Readiness after the arrival. */
  late: Float64Array;
  /** Response time, or -1 where the job did not finish. */
  responses: Float64Array;
  executed: Float64Array;
}

export interface Marks {
  times: Float64Array;
  kinds: Uint16Array;
  jobs: Float64Array;
  values: Float64Array;
}

export interface Lane {
  kind: LaneKind;
  index: number;
  intervals: Intervals;
  jobs: Jobs;
  marks: Marks;
  /** A server's remaining budget. */
  levels: Levels | null;
  /** The job with the longest response, or -1. */
  worst: number;
  /** Instants of missed deadlines, ascending. */
  misses: Float64Array;
  /** Overruns, enforcement, skipped releases, lost records, tasks held back by the kernel, ascending. */
  alarms: Float64Array;
}

const ALARMS = new Set<number>([Mark.Overrun, Mark.Enforcement, Mark.Skip, Mark.Lost, Mark.Starve]);

const CLASSES: Record<LaneKind, number> = { task: 3, server: 3, device: 2, cpu: 2, kernel: 5 };

/** Executing 0, without the processor 1, ready 2; busy with a task 0, foreign 1; kernel classes. */
function classOf(kind: LaneKind, code: number): number {
  if (kind === "task") return code === State.Executing ? 0 : code === State.Ready ? 2 : 1;
  if (kind === "cpu") return code === 0 ? 1 : 0;
  return code - 1;
}

/** Decodes a lane; `deadline` is the task's relative one. */
export async function decodeLane(packed: PackedLane, deadline: number | null): Promise<Lane> {
  const [interval, job, mark] = await Promise.all(
    [packed.intervals, packed.jobs, packed.marks].map(([, base64]) => unpack(base64)),
  );
  const intervals = decodeIntervals(packed.kind, packed.intervals[0], interval);
  const jobs = decodeJobs(packed.jobs[0], job);
  const marks = decodeMarks(packed.marks[0], mark);
  return {
    kind: packed.kind,
    index: packed.index,
    intervals,
    jobs,
    marks,
    levels: packed.kind === "server" ? new Levels(intervals) : null,
    worst: worstJob(jobs),
    misses: missesOf(jobs, marks, deadline),
    alarms: timesOf(marks, (kind) => ALARMS.has(kind)),
  };
}

function decodeIntervals(kind: LaneKind, rows: number, columns: Uint8Array[]): Intervals {
  const [starts, lengths, codes, arguments_] = columns;
  const from = sums(starts, rows);
  const ends = values(lengths, rows);
  for (let i = 0; i < rows; i++) ends[i] += from[i];
  return new Intervals(
    from,
    ends,
    bytes(codes, rows),
    sums(arguments_, rows),
    (code) => classOf(kind, code),
    CLASSES[kind],
  );
}

function decodeJobs(rows: number, columns: Uint8Array[]): Jobs {
  const responses = values(columns[3], rows);
  for (let i = 0; i < rows; i++) responses[i] -= 1;
  return {
    numbers: sums(columns[0], rows),
    arrivals: sums(columns[1], rows),
    late: values(columns[2], rows),
    responses,
    executed: values(columns[4], rows),
  };
}

/** Marks in ascending order of time, whatever order they were recorded in. */
function decodeMarks(rows: number, columns: Uint8Array[]): Marks {
  const marks = {
    times: sums(columns[0], rows),
    kinds: bytes(columns[1], rows),
    jobs: sums(columns[2], rows),
    values: values(columns[3], rows),
  };
  let sorted = true;
  for (let i = 1; i < rows && sorted; i++) sorted = marks.times[i - 1] <= marks.times[i];
  if (sorted) return marks;
  const order = Uint32Array.from({ length: rows }, (_, i) => i).sort((a, b) => marks.times[a] - marks.times[b]);
  const pick = (array: Float64Array) => Float64Array.from(order, (i) => array[i]);
  return {
    times: pick(marks.times),
    kinds: Uint16Array.from(order, (i) => marks.kinds[i]),
    jobs: pick(marks.jobs),
    values: pick(marks.values),
  };
}

function timesOf(marks: Marks, wanted: (kind: number) => boolean): Float64Array {
  return marks.times.filter((_, i) => wanted(marks.kinds[i]));
}

/** Each missed deadline once: from the jobs' own times, and from marks of jobs that never finished. */
function missesOf(jobs: Jobs, marks: Marks, deadline: number | null): Float64Array {
  const byJob = new Map<number, number>();
  if (deadline !== null) {
    for (let i = 0; i < jobs.numbers.length; i++) {
      if (jobs.responses[i] > deadline) byJob.set(jobs.numbers[i], jobs.arrivals[i] + deadline);
    }
  }
  for (let i = 0; i < marks.times.length; i++) {
    if (marks.kinds[i] === Mark.Miss && !byJob.has(marks.jobs[i])) byJob.set(marks.jobs[i], marks.times[i]);
  }
  return Float64Array.from(byJob.values()).sort();
}

function worstJob(jobs: Jobs): number {
  let worst = -1;
  for (let i = 0; i < jobs.responses.length; i++) {
    if (jobs.responses[i] >= 0 && (worst < 0 || jobs.responses[i] > jobs.responses[worst])) worst = i;
  }
  return worst;
}
