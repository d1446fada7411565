/** The table of tasks: what is proved beside what was seen. */
import { chip, h, place } from "./dom";
import type { Report, RunTask, TaskRow } from "./types";
import { count, exactTime, percent, time } from "./units";

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
  section.append(legend(rows));
  const explained = rows.filter(({ task }) => task.explain.trim() !== "");
  if (explained.length > 8) {
    section.append(h("details", { class: "many" }, h("summary", {}, `Where the time goes: ${explained.length} tasks`), explanations(explained)));
  } else if (explained.length > 0) {
    section.append(h("h3", {}, "Where the time goes"), explanations(explained));
  }
  return section;
}

/** The address of a task's row on the page; `null` where there is no such task. */
export function rowOf(report: Report, name: string): string | null {
  const index = report.tasks.findIndex((task) => task.name === name);
  return index < 0 ? null : `#${rowId(index)}`;
}

const rowId = (index: number) => `task-${index}`;

function table(rows: Row[], jump: (task: number) => void): HTMLTableElement {
  const shown: Shown = {
    free: rows.some((row) => row.task.without_costs !== null),
    simulated: rows.some((row) => row.simulated !== null),
    measured: rows.some((row) => row.measured !== null),
    scale: scaleOf(rows),
  };
  const head = (text: string, title: string, kind = "number") => h("th", { scope: "col", class: kind, title }, text);
  const header = h(
    "tr",
    {},
    head("Task", "Name, processor, priority, preemption", "text"),
    head(shown.free ? "Proof with costs" : "Proof", "What the analysis says about the deadline", "text"),
    head("Bound", "Bound of the response time"),
    shown.free && head("Without costs", "The proof and the bound on a machine that costs nothing"),
    shown.simulated && head("Sim. max", "Greatest simulated response time"),
    shown.measured && head("Meas. p99.9", "99.9 percent of the measured response times are at most this"),
    shown.measured && head("Meas. max", "Greatest measured response time"),
    head("Deadline", "Relative deadline"),
    head("Margin", "Deadline less bound"),
    h("th", { scope: "col", class: "text bar-column", title: "Bound, simulated and measured maximum as a part of the deadline: one scale for all tasks" }, "Part of the deadline", scaleTicks(shown.scale)),
    head("Jobs", "Finished jobs and missed deadlines of each run", "text"),
  );
  return h(
    "table",
    { class: "tasks cards" },
    h("caption", { class: "hidden" }, "Tasks: proof, bound, simulated and measured response times, deadline"),
    h("thead", {}, header),
    h("tbody", {}, ...rows.map((row) => body(row, shown, jump))),
  );
}

interface Shown {
  /** Whether there is a proof without costs. */
  free: boolean;
  /** Whether there is such a run. */
  simulated: boolean;
  measured: boolean;
  /** The end of every bar, as a part of the deadline. */
  scale: number;
}

function body(row: Row, shown: Shown, jump: (task: number) => void): HTMLTableRowElement {
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
  const cell = (label: string, value: number | null, extra = "") =>
    h("td", { class: `number ${extra}`, "data-label": label, title: value === null ? "none" : exactTime(value) }, inWords(value));
  const worst = measured?.response_ns_max ?? null;
  const worstCell = cell("Measured max", worst, alarm(worst));
  if (worst !== null) {
    const button = h(
      "button",
      { class: "link", title: `${exactTime(worst)}: show the job on the timeline`, onclick: () => jump(row.index) },
      time(worst),
    );
    worstCell.replaceChildren(button);
  }
  return h(
    "tr",
    { id: rowId(row.index) },
    h(
      "th",
      { scope: "row", class: "text" },
      task.name,
      h("span", { class: "sub" }, facts.filter(Boolean).join(" · ")),
      mode !== "" && h("span", { class: "sub" }, mode),
    ),
    h("td", { class: "text proof", "data-label": shown.free ? "Proof with costs" : "Proof" }, chip(kind, word), h("span", { class: "sub", title: source(task) }, testName(task))),
    cell("Bound", task.bound_ns, "strong"),
    shown.free && freeCell(row),
    shown.simulated && cell("Simulated max", simulated?.response_ns_max ?? null, alarm(simulated?.response_ns_max)),
    shown.measured && cell("Measured p99.9", measured?.response_ns_p99_9 ?? null, alarm(measured?.response_ns_p99_9)),
    shown.measured && worstCell,
    cell("Deadline", task.deadline_ns),
    cell("Margin", row.margin, row.margin !== null && row.margin < 0 ? "late" : ""),
    h("td", { class: "bar-column", "data-label": "Part of the deadline" }, bar(row, shown.scale)),
    h("td", { class: "text jobs", "data-label": "Jobs" }, ...jobs("simulated", simulated), ...jobs("measured", measured)),
  );
}

/** The proof and the bound on a machine that costs nothing. */
function freeCell({ task }: Row): HTMLTableCellElement {
  const free = task.without_costs;
  const cell = h("td", { class: "number free", "data-label": "Without costs" });
  if (!free) cell.append("–");
  else cell.append(inWords(free.bound_ns), h("span", { class: `sub ${free.verdict === "misses" ? "alarm" : ""}` }, VERDICT[free.verdict][1]));
  return cell;
}

/** A time with its unit, since one row may hold microseconds and seconds. */
const inWords = (ns: number | null) => (ns === null ? "–" : time(ns));

/** "simulated: 500 jobs, none missed"; where some did not complete, how many did, and where some were not judged, how many were. */
function jobs(kind: string, run: RunTask | null): HTMLElement[] {
  if (!run) return [];
  const all = `${count(run.jobs)} ${run.jobs === 1 ? "job" : "jobs"}`;
  const many = run.completed === run.jobs ? all : `${all}, ${run.completed === 0 ? "none" : count(run.completed)} completed`;
  const missed = run.missed === 0 ? "none missed" : `${count(run.missed)} missed`;
  const judged = run.judged;
  const left = !judged || judged.judged === judged.released ? "" : `${count(judged.judged)} of ${count(judged.released)} judged, `;
  const words = [h("span", {}, `${kind}: ${many}, ${left}`), h("span", { class: run.missed > 0 ? "alarm" : "" }, missed)];
  return [h("span", { class: "line" }, ...words)];
}

function testName(task: TaskRow): string {
  const strength = task.bound_ns === null ? "" : task.exact ? "exact" : "sufficient";
  return [task.test, strength].filter(Boolean).join(" · ");
}

function source(task: TaskRow): string | null {
  return task.source ? `source: ${task.source} (docs/references.bib)` : null;
}

/** No bar reaches beyond this part of the deadline: what does is drawn at the end, with a sign. */
const WIDEST = 2;

function shares({ task, simulated, measured }: Row): number[] {
  const deadline = task.deadline_ns;
  if (deadline === null) return [];
  const values = [task.bound_ns, simulated?.response_ns_max, measured?.response_ns_max];
  return values.filter((v): v is number => typeof v === "number").map((v) => v / deadline);
}

/** One scale for all bars: a little more than the greatest part of a deadline that was bounded or seen. */
function scaleOf(rows: Row[]): number {
  return Math.min(WIDEST, 1.04 * Math.max(1, ...rows.flatMap(shares)));
}

function scaleTicks(scale: number): HTMLElement {
  const ticks = h("span", { class: "ticks", "aria-hidden": "true" });
  for (const part of [0, 0.5, 1, 1.5].filter((one) => one <= scale)) {
    const tick = h("span", { class: part === 0 ? "first" : "" }, `${part * 100} %`);
    place(tick, { left: `${((100 * part) / scale).toFixed(2)}%` });
    ticks.append(tick);
  }
  return ticks;
}

/** Bound as a bar, maxima as marks, as parts of the deadline. */
function bar(row: Row, scale: number): HTMLElement {
  const { task, simulated, measured } = row;
  const deadline = task.deadline_ns;
  if (deadline === null) return h("span", { class: "sub" }, "no deadline");
  const at = (ns: number) => `${Math.min(100, (100 * ns) / deadline / scale).toFixed(2)}%`;
  const words: string[] = [];
  const box = h("div", { class: "bar", role: "img" });
  const add = (name: string, word: string, value: number | null | undefined, width: boolean) => {
    if (value === null || value === undefined) return;
    const beyond = value / deadline > scale;
    const said = `${word} ${time(value)}, ${percent(value / deadline)} of the deadline`;
    const mark = h("span", { class: `${name}${beyond ? " beyond" : ""}`, title: said });
    place(mark, width ? { width: at(value) } : { left: at(value) });
    box.append(mark);
    words.push(said);
  };
  add("bar-track", "deadline", deadline, true);
  words.pop();
  add(`bar-bound${(task.bound_ns ?? 0) > deadline ? " over" : ""}`, "bound", task.bound_ns, true);
  add("bar-deadline", "deadline", deadline, false);
  words.pop();
  add("bar-simulated", "simulated maximum", simulated?.response_ns_max, false);
  add("bar-measured", "measured maximum", measured?.response_ns_max, false);
  box.setAttribute("aria-label", words.join("; ") || "nothing bounded, nothing seen");
  return box;
}

function legend(rows: Row[]): HTMLElement {
  const item = (name: string, text: string) => h("span", {}, h("i", { class: `key ${name}` }), text);
  return h(
    "p",
    { class: "legend", "aria-hidden": "true" },
    item("key-bound", "bound"),
    rows.some((row) => row.simulated) && item("key-simulated", "simulated maximum"),
    rows.some((row) => row.measured) && item("key-measured", "measured maximum"),
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
