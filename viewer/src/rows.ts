/** Which rows the timeline shows: per task the runs under each other, then servers, devices, processors, kernel lanes. */
import { type Lane, decodeLane } from "./lane";
import type { PackedLane, Report, Run, RunKind, TaskRow } from "./types";

export interface Row {
  packed: PackedLane;
  lane: Lane | null;
  run: Run;
  runIndex: number;
  runKind: RunKind;
  /** The task of a task lane. */
  task: TaskRow | null;
  /** The full budget of a server lane. */
  budget: number;
  name: string;
  /** What the run's records number as tasks: those of the file, then threads of drivers. */
  tasks: string[];
  /** Whether this row begins a group (a task, a processor). */
  first: boolean;
  y: number;
  height: number;
}

export const ROW = 26;
export const GAP = 9;
/** Axis and findings above the rows. */
export const HEAD = 40;

const ORDER = { task: 0, server: 1, device: 2, cpu: 3, kernel: 4 } as const;

/** Every row of every run, in the order of the page. */
export function allRows(report: Report): Row[] {
  const rows: Row[] = [];
  report.runs.forEach((run, runIndex) => {
    const lanes = run.timeline?.lanes ?? [];
    const tasks: string[] = [];
    for (const lane of lanes) if (lane.kind === "task") tasks[lane.index] = lane.name;
    for (const packed of lanes) {
      // A driver's thread that never had anything to do.
      if (packed.kind === "task" && packed.index >= report.tasks.length && packed.intervals[0] + packed.jobs[0] === 0) continue;
      const task = packed.kind === "task" ? (report.tasks[packed.index] ?? null) : null;
      const server = packed.kind === "server" ? report.servers.find((one) => one.name === packed.name) : null;
      const budget = server?.budget_ns ?? 0;
      rows.push({ packed, lane: null, run, runIndex, runKind: run.kind, task, budget, name: laneName(packed), tasks, first: false, y: 0, height: ROW });
    }
  });
  return rows.sort(
    (a, b) =>
      ORDER[a.packed.kind] - ORDER[b.packed.kind] || a.packed.index - b.packed.index || a.runIndex - b.runIndex,
  );
}

function laneName(packed: PackedLane): string {
  return packed.kind === "server" ? `Budget of ${packed.name}` : packed.name;
}

/** Gives the rows of the visible runs their places; returns them and the whole height. `heightOf` knows `first` already. */
export function arrange(rows: Row[], visible: ReadonlySet<number>, heightOf: (row: Row) => number): { rows: Row[]; height: number } {
  const shown = rows.filter((row) => visible.has(row.runIndex));
  let y = HEAD;
  shown.forEach((row, i) => {
    const before = shown[i - 1];
    row.first = !before || before.packed.kind !== row.packed.kind || before.packed.index !== row.packed.index;
    row.height = heightOf(row);
    if (row.first && before) y += GAP;
    row.y = y;
    y += row.height;
  });
  return { rows: shown, height: y + 6 };
}

/** Decodes row after row, giving way to the page between them; `done` is called after each. */
export async function decodeAll(rows: Row[], done: () => void): Promise<void> {
  for (const row of rows) {
    row.lane = await decodeLane(row.packed, row.task?.deadline_ns ?? null);
    done();
    await new Promise((next) => setTimeout(next, 0));
  }
}
