/** What verify found, grouped by cause, the gravest class first; a click goes to the place on the timeline. */
import { chip, h } from "./dom";
import type { Finding, FindingClass, FindingGroup, Report } from "./types";
import { count, exactTime, time } from "./units";

const CLASSES: [FindingClass, "bad" | "warn" | "info", string, string][] = [
  ["bound-violated", "bad", "Bound violated", "The assumptions held and a bound did not: a fault of horolog."],
  ["model-violated", "bad", "Model violated", "A task or the machine file broke an assumption of the model."],
  ["schedule-differs", "bad", "Schedule differs", "What ran is not what the rules of the system give for these demands."],
  ["cannot-tell", "warn", "Cannot tell", "What is on record does not decide whose fault it is."],
  ["machine-disturbed", "warn", "Machine disturbed", "The kernel's record shows what the model does not have."],
  ["note", "info", "Noted", "Told for completeness."],
];

/** Rows that a group shows at first. */
const FIRST = 25;

type Numbered = { finding: Finding; index: number };

/** Findings of one kind about one task, thread or interrupt in one run. */
interface Cause {
  class: FindingClass;
  kind: string;
  subject: string;
  run: number | null;
  count: number;
  worst: number;
  listed: Numbered[];
}

export function findingsSection(report: Report, jump: (finding: number) => void): HTMLElement {
  const section = h("section", { id: "findings", "aria-labelledby": "findings-title" }, h("h2", { id: "findings-title" }, "Findings"));
  const causes = causesOf(report);
  if (causes.length === 0) {
    const said = report.runs.length > 0 ? "Nothing broke the model, no bound, and nothing disturbed the machine." : "No run, no findings.";
    section.append(h("p", { class: "empty" }, said));
    return section;
  }
  const groups = causes.map((cause) => new Group(report, cause, jump));
  const blocks = CLASSES.flatMap(([name, kind, word, meaning]) => {
    const own = groups.filter((group) => group.cause.class === name);
    if (own.length === 0) return [];
    const total = own.reduce((sum, group) => sum + group.cause.count, 0);
    const heading = h("h3", {}, chip(kind, word), h("span", { class: "sub inline" }, `${count(total)} · ${meaning}`));
    return [{ own, element: h("div", { class: "finding-class" }, heading, ...own.map((group) => group.element)) }];
  });
  const said = h("span", { class: "sub inline", role: "status" });
  const search = h("input", { type: "search", placeholder: "task, thread, kind, words …", "aria-label": "Search the findings" });
  search.addEventListener("input", () => {
    const wanted = search.value.trim().toLowerCase();
    let found = 0;
    for (const { own, element } of blocks) {
      const hits = own.map((group) => group.filter(wanted));
      element.hidden = hits.every((n) => n === 0);
      found += hits.reduce((a, b) => a + b, 0);
    }
    said.textContent = wanted === "" ? "" : `${count(found)} listed ${found === 1 ? "finding matches" : "findings match"}`;
  });
  section.append(h("p", { class: "search" }, search, said), ...blocks.map(({ element }) => element));
  if (report.findings_omitted > 0) {
    section.append(h("p", { class: "note" }, `${count(report.findings_omitted)} further findings are counted above and not listed.`));
  }
  return section;
}

/** The groups of the document; a finding without one stands under its own kind. */
function causesOf(report: Report): Cause[] {
  const fromGroup = (group: FindingGroup): Cause => ({ ...group, worst: group.worst_excess_ns, listed: [] });
  const causes = report.groups.filter((group) => group.count > 0).map(fromGroup);
  const byGroup = new Map(report.groups.map((group, i) => [i, causes.find((cause) => cause.kind === group.kind && cause.subject === group.subject && cause.class === group.class && cause.run === group.run)]));
  const others = new Map<string, Cause>();
  report.findings.forEach((finding, index) => {
    let cause = finding.group === null ? undefined : byGroup.get(finding.group);
    if (!cause) {
      const subject = finding.task === null ? "" : (report.tasks[finding.task]?.name ?? "");
      const key = [finding.class, finding.kind, subject, finding.run].join("\n");
      cause = others.get(key) ?? { class: finding.class, kind: finding.kind, subject, run: finding.run, count: 0, worst: 0, listed: [] };
      others.set(key, cause);
      cause.count += finding.count;
    }
    cause.listed.push({ finding, index });
  });
  return [...causes, ...others.values()].sort((a, b) => b.count - a.count);
}

class Group {
  readonly element: HTMLDetailsElement;
  private readonly body = h("tbody");
  private readonly more = h("button", {});
  private shown = FIRST;
  private matching: Numbered[];

  constructor(
    private readonly report: Report,
    readonly cause: Cause,
    private readonly jump: (finding: number) => void,
  ) {
    this.matching = cause.listed;
    const run = cause.run === null ? null : report.runs[cause.run];
    const facts = [
      `${count(cause.count)} ${cause.count === 1 ? "finding" : "findings"}`,
      cause.worst > 0 ? `at most ${time(cause.worst)} beyond what is allowed` : "",
      run?.kind === "simulated" ? "in the simulation" : "",
    ];
    const summary = h(
      "summary",
      {},
      h("span", { class: "cause" }, cause.kind),
      cause.subject !== "" && h("span", { class: "subject" }, cause.subject),
      h("span", { class: "sub inline" }, facts.filter(Boolean).join(" · ")),
    );
    this.more.addEventListener("click", () => {
      this.shown = Infinity;
      this.fill();
    });
    this.element = h("details", { class: "finding-group" }, summary);
    this.element.addEventListener("toggle", () => this.element.open && this.fill());
  }

  /** Shows what holds these words; how many rows do. */
  filter(wanted: string): number {
    const { cause } = this;
    const is = (text: string) => text.toLowerCase().includes(wanted);
    const whole = is(cause.kind) || is(cause.subject);
    this.matching = whole ? cause.listed : cause.listed.filter(({ finding }) => is(this.wordsOf(finding)));
    const hits = whole ? Math.max(1, this.matching.length) : this.matching.length;
    this.element.hidden = wanted !== "" && hits === 0;
    this.element.open = wanted !== "" && hits > 0;
    if (this.element.open) this.fill();
    return this.element.hidden ? 0 : hits;
  }

  private wordsOf(finding: Finding): string {
    const task = finding.task === null ? "" : (this.report.tasks[finding.task]?.name ?? "");
    return `${finding.text} ${task} ${finding.job === null ? "" : `job ${finding.job}`} ${finding.cpu === null ? "" : `CPU ${finding.cpu}`}`;
  }

  private fill(): void {
    if (!this.body.isConnected && this.cause.listed.length > 0) this.element.append(this.table(), this.more);
    this.body.replaceChildren(...this.matching.slice(0, this.shown).map((numbered) => this.row(numbered)));
    this.more.hidden = this.matching.length <= this.shown;
    this.more.textContent = `Show all ${count(this.matching.length)}`;
  }

  private table(): HTMLElement {
    const head = (text: string, kind: string) => h("th", { scope: "col", class: kind }, text);
    const name = `${this.cause.kind} ${this.cause.subject}`;
    const table = h(
      "table",
      { class: "findings cards" },
      h("caption", { class: "hidden" }, name),
      h("thead", {}, h("tr", {}, head("When", "number"), head("Where", "text"), this.lasted && head("Lasted", "number"), head("Description", "text"))),
      this.body,
    );
    return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": name }, table);
  }

  private get lasted(): boolean {
    return this.cause.listed.some(({ finding }) => finding.length_ns !== null);
  }

  private row({ finding, index }: Numbered): HTMLTableRowElement {
    const { report } = this;
    const run = finding.run === null ? null : report.runs[finding.run];
    const at = finding.time_ns === null ? null : finding.time_ns - (run?.start_ns ?? 0);
    const when = at === null ? "–" : time(at, 6);
    const place = run?.timeline && at !== null;
    const where = [
      finding.task === null ? null : (report.tasks[finding.task]?.name ?? `task ${finding.task}`),
      finding.job === null ? null : `job ${count(finding.job)}`,
      finding.cpu === null ? null : `CPU ${finding.cpu}`,
    ].filter(Boolean);
    const button = () =>
      h("button", { class: "link", title: `${exactTime(at ?? 0)}: show on the timeline`, onclick: () => this.jump(index) }, when);
    return h(
      "tr",
      {},
      h("td", { class: "number", "data-label": "When" }, place ? button() : when, finding.count > 1 && h("span", { class: "sub inline" }, `×${count(finding.count)}`)),
      h("td", { class: "text where", "data-label": "Where" }, where.join(" · ") || "–"),
      this.lasted && h("td", { class: "number", "data-label": "Lasted" }, finding.length_ns === null ? "–" : time(finding.length_ns)),
      h("td", { class: "text wide" }, finding.text),
    );
  }
}
