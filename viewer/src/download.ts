/** The page's data as files: the JSON of the contract, tasks and jobs as comma-separated values. */
import { inflate } from "./columns";
import { h } from "./dom";
import type { Row } from "./rows";
import type { Report } from "./types";

type Cell = string | number | boolean | null | undefined;

/** Buttons that save the data; `rows` waits until every lane is decoded. */
export function downloads(report: Report, rows: () => Promise<Row[]>): HTMLElement {
  const stem = (report.system || "report").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "") || "report";
  const button = (label: string, title: string, name: string, type: string, make: () => Promise<string> | string) =>
    h("button", { title, onclick: async () => save(`${stem}-${name}`, type, await make()) }, label);
  const box = h("p", { class: "downloads", role: "group", "aria-label": "Data" });
  const { json } = report;
  if (json) box.append(button("Verdict (JSON)", "What horolog loop --format json prints", "loop.json", "application/json", () => inflate(json[1])));
  box.append(button("Tasks (CSV)", "One line a task and run", "tasks.csv", "text/csv", () => tasksTable(report)));
  if (report.runs.some((run) => run.timeline)) {
    box.append(button("Jobs (CSV)", "One line a job that is drawn", "jobs.csv", "text/csv", async () => jobsTable(await rows())));
  }
  return box;
}

function save(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** RFC 4180: quotes where a cell needs them. */
export function csv(lines: Cell[][]): string {
  const cell = (value: Cell) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return lines.map((line) => `${line.map(cell).join(",")}\r\n`).join("");
}

/** Every task in every run, with what was proved. */
export function tasksTable(report: Report): string {
  const head = [
    "run", "task", "cpu", "priority", "period_ns", "wcet_ns", "deadline_ns", "verdict", "bound_ns", "exact", "test",
    "verdict_without_costs", "bound_without_costs_ns", "jobs", "completed", "missed", "unfinished", "skipped",
    "response_ns_min", "response_ns_mean", "response_ns_p50", "response_ns_p99_9", "response_ns_max",
  ];
  const runs = report.runs.length > 0 ? report.runs : [null];
  const lines = runs.flatMap((run) =>
    report.tasks.map((task, i): Cell[] => {
      const seen = run?.tasks[i];
      return [
        run?.kind, task.name, task.cpu, task.priority, task.period_ns, task.wcet_ns, task.deadline_ns, task.verdict, task.bound_ns, task.exact, task.test,
        task.without_costs?.verdict, task.without_costs?.bound_ns, seen?.jobs, seen?.completed, seen?.missed, seen?.unfinished, seen?.skipped,
        seen?.response_ns_min, seen?.response_ns_mean, seen?.response_ns_p50, seen?.response_ns_p99_9, seen?.response_ns_max,
      ];
    }),
  );
  return csv([head, ...lines]);
}

/** Every job that is drawn; an unfinished one has no response, and `missed` where its deadline passed on record. */
export function jobsTable(rows: Row[]): string {
  const lines: Cell[][] = [["run", "task", "job", "arrival_ns", "ready_ns", "response_ns", "executed_ns", "deadline_ns", "missed"]];
  for (const row of rows) {
    if (!row.lane || row.packed.kind !== "task") continue;
    const { numbers, arrivals, late, responses, executed } = row.lane.jobs;
    const deadline = row.task?.deadline_ns ?? null;
    const missed = new Set(row.lane.misses);
    for (let i = 0; i < numbers.length; i++) {
      const due = deadline === null ? null : arrivals[i] + deadline;
      const finished = responses[i] >= 0;
      lines.push([
        row.runKind, row.name, numbers[i], arrivals[i], arrivals[i] + late[i], finished ? responses[i] : null, finished ? executed[i] : null, due,
        due !== null && missed.has(due),
      ]);
    }
  }
  return csv(lines);
}
