/** The table of tasks: what is proved beside what was seen. */
import { chip, h, place } from "./dom";
import type { Report, RunTask, TaskRow } from "./types";
import { columnFormat, count, exactTime, percent, time } from "./units";

const VERDICT = {
  meets: ["good", "meets"],
  misses: ["bad", "misses"],
  unknown: ["warn", "unknown"],
} as const;

interface Row {
  task: TaskRow;
  index: number;
  simulated: RunTask | null;
  measured: RunTask | null;
  margin: number | null;
}

/** `jump(task)` shows the worst measured (else simulated) job on the timeline. */
export function tasksSection(report: Report, jump: (task: number) => void): HTMLElement {
  const rows = report.tasks.map((task, index): Row => {
    const of = (kind: string) => report.runs.find((run) => run.kind === kind)?.tasks[index] ?? null;
    const margin = task.deadline_ns !== null && task.bound_ns !== null ? task.deadline_ns - task.bound_ns : null;
    return { task, index, simulated: of("simulated"), measured: of("measured"), margin };
  });
  const section = h("section", { id: "tasks", "aria-labelledby": "tasks-title" }, h("h2", { id: "tasks-title" }, "Tasks"));
  section.append(h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of tasks" }, table(rows, jump)));
  section.append(legend());
  const explained = rows.filter(({ task }) => task.explain.trim() !== "");
  if (explained.length > 8) {
    section.append(h("details", { class: "many" }, h("summary", {}, `Where the time goes: ${explained.length} tasks`), explanations(explained)));
  } else if (explained.length > 0) {
    section.append(h("h3", {}, "Where the time goes"), explanations(explained));
  }
  return section;
}

function table(rows: Row[], jump: (task: number) => void): HTMLTableElement {
  const columns = {
    bound: columnFormat(rows.map((r) => r.task.bound_ns)),
    simulated: columnFormat(rows.map((r) => r.simulated?.response_ns_max ?? null)),
    p999: columnFormat(rows.map((r) => r.measured?.response_ns_p99_9 ?? null)),
    measured: columnFormat(rows.map((r) => r.measured?.response_ns_max ?? null)),
    deadline: columnFormat(rows.map((r) => r.task.deadline_ns)),
    margin: columnFormat(rows.map((r) => r.margin)),
  };
  const head = (text: string, unit: string | null, title: string, kind = "number") =>
    h("th", { scope: "col", class: kind, title }, text, unit ? h("span", { class: "sub" }, unit) : null);
  const header = h(
    "tr",
    {},
    head("Task", null, "Name, processor, priority, preemption", "text"),
    head("Proof", null, "What the analysis says about the deadline", "text"),
    head("Bound", columns.bound.unit.name, "Bound of the response time"),
    head("Sim. max", columns.simulated.unit.name, "Greatest simulated response time"),
    head("Meas. p99.9", columns.p999.unit.name, "99.9 percent of the measured response times are at most this"),
    head("Meas. max", columns.measured.unit.name, "Greatest measured response time"),
    head("Deadline", columns.deadline.unit.name, "Relative deadline"),
    head("Margin", columns.margin.unit.name, "Deadline less bound"),
    head("Response against deadline", null, "Bound, simulated and measured maximum on the scale of the deadline", "text bar-column"),
    head("Jobs", null, "Finished jobs and missed deadlines: simulated, measured", "number"),
  );
  return h(
    "table",
    { class: "tasks" },
    h("caption", { class: "hidden" }, "Tasks: proof, bound, simulated and measured response times, deadline"),
    h("thead", {}, header),
    h("tbody", {}, ...rows.map((row) => body(row, columns, jump))),
  );
}

type Columns = Record<"bound" | "simulated" | "p999" | "measured" | "deadline" | "margin", ReturnType<typeof columnFormat>>;

function body(row: Row, columns: Columns, jump: (task: number) => void): HTMLTableRowElement {
  const { task, simulated, measured } = row;
  const [kind, word] = VERDICT[task.verdict];
  const facts = [
    `CPU ${task.cpu}`,
    task.priority === null ? "" : `priority ${task.priority}`,
    task.period_ns === null ? "" : `every ${time(task.period_ns)}`,
  ];
  const mode = task.preemption === "preemptive" ? "" : task.preemption;
  const above = (value: number | null | undefined) =>
    value !== null && value !== undefined && task.bound_ns !== null && value > task.bound_ns;
  const late = (value: number | null | undefined) =>
    value !== null && value !== undefined && task.deadline_ns !== null && value > task.deadline_ns;
  const alarm = (value: number | null | undefined) => (late(value) ? "late" : above(value) ? "above" : "");
  const cell = (value: number | null, column: ReturnType<typeof columnFormat>, extra = "") =>
    h("td", { class: `number ${extra}`, title: value === null ? "none" : exactTime(value) }, column.format(value));
  const worst = measured?.response_ns_max ?? null;
  const worstCell = cell(worst, columns.measured, alarm(worst));
  if (worst !== null) {
    const button = h(
      "button",
      { class: "link", title: `${exactTime(worst)}: show the job on the timeline`, onclick: () => jump(row.index) },
      columns.measured.format(worst),
    );
    worstCell.replaceChildren(button);
  }
  return h(
    "tr",
    {},
    h(
      "th",
      { scope: "row", class: "text" },
      task.name,
      h("span", { class: "sub" }, facts.filter(Boolean).join(" · ")),
      mode !== "" && h("span", { class: "sub" }, mode),
    ),
    h("td", { class: "text proof" }, chip(kind, word), h("span", { class: "sub", title: source(task) }, testName(task))),
    cell(task.bound_ns, columns.bound, "strong"),
    cell(simulated?.response_ns_max ?? null, columns.simulated, alarm(simulated?.response_ns_max)),
    cell(measured?.response_ns_p99_9 ?? null, columns.p999, alarm(measured?.response_ns_p99_9)),
    worstCell,
    cell(task.deadline_ns, columns.deadline),
    cell(row.margin, columns.margin, row.margin !== null && row.margin < 0 ? "late" : ""),
    h("td", { class: "bar-column" }, bar(row)),
    jobsCell([simulated, measured]),
  );
}

/** Finished jobs of both runs; missed deadlines below, loud where there are any. */
function jobsCell(runs: (RunTask | null)[]): HTMLTableCellElement {
  const both = (of: (t: RunTask) => number) => runs.map((t) => (t ? count(of(t)) : "–")).join(" / ");
  const missed = runs.reduce((sum, t) => sum + (t?.missed ?? 0), 0);
  const words = missed > 0 ? `✕ missed ${both((t) => t.missed)}` : "none missed";
  const title = "finished jobs and missed deadlines: simulated / measured";
  return h("td", { class: "number", title }, both((t) => t.completed), h("span", { class: `sub ${missed > 0 ? "alarm" : ""}` }, words));
}

function testName(task: TaskRow): string {
  const strength = task.bound_ns === null ? "" : task.exact ? "exact" : "sufficient";
  return [task.test, strength].filter(Boolean).join(" · ");
}

function source(task: TaskRow): string | null {
  return task.source ? `source: ${task.source} (docs/references.bib)` : null;
}

/** Bound as a bar, maxima as marks, on a scale that ends a little after the deadline. */
function bar(row: Row): HTMLElement {
  const { task, simulated, measured } = row;
  const seen = [simulated?.response_ns_max, measured?.response_ns_max].filter((v): v is number => typeof v === "number");
  const scale = 1.04 * Math.max(task.deadline_ns ?? 0, task.bound_ns ?? 0, ...seen, 1);
  const at = (ns: number) => `${((100 * ns) / scale).toFixed(2)}%`;
  const words: string[] = [];
  const box = h("div", { class: "bar", role: "img" });
  const add = (name: string, word: string, value: number | null | undefined, width: boolean) => {
    if (value === null || value === undefined) return;
    const mark = h("span", { class: name, title: `${word} ${exactTime(value)}` });
    place(mark, width ? { width: at(value) } : { left: at(value) });
    box.append(mark);
    words.push(`${word} ${time(value)}`);
  };
  const deadline = task.deadline_ns;
  add("bar-track", "deadline", deadline, true);
  add(`bar-bound${deadline !== null && (task.bound_ns ?? 0) > deadline ? " over" : ""}`, "bound", task.bound_ns, true);
  add("bar-deadline", "deadline", deadline, false);
  add("bar-simulated", "simulated maximum", simulated?.response_ns_max, false);
  add("bar-measured", "measured maximum", measured?.response_ns_max, false);
  if (deadline !== null && task.bound_ns !== null) words.push(`bound at ${percent(task.bound_ns / deadline)} of the deadline`);
  box.setAttribute("aria-label", [...new Set(words)].join(", "));
  return box;
}

function legend(): HTMLElement {
  const item = (name: string, text: string) => h("span", {}, h("i", { class: `key ${name}` }), text);
  return h(
    "p",
    { class: "legend", "aria-hidden": "true" },
    item("key-bound", "bound"),
    item("key-simulated", "simulated maximum"),
    item("key-measured", "measured maximum"),
    item("key-deadline", "deadline"),
  );
}

function explanations(rows: Row[]): HTMLElement {
  const box = h("div", { class: "explanations" });
  for (const { task } of rows) {
    box.append(
      h("details", {}, h("summary", {}, task.name, task.bound_ns !== null && h("span", { class: "sub inline" }, `bound ${time(task.bound_ns)}`)), h("pre", {}, task.explain)),
    );
  }
  return box;
}
