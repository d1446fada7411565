/** What verify found, the gravest class first; a click goes to the place on the timeline. */
import { chip, h } from "./dom";
import type { Finding, FindingClass, Report } from "./types";
import { count, exactTime, time } from "./units";

const CLASSES: [FindingClass, "bad" | "warn" | "info", string, string][] = [
  ["bound-violated", "bad", "Bound violated", "The assumptions held and a bound did not: a fault of horolog."],
  ["model-violated", "bad", "Model violated", "A task or the machine file broke an assumption of the model."],
  ["machine-disturbed", "warn", "Machine disturbed", "The kernel's record shows what the model does not have."],
  ["schedule-differs", "bad", "Schedule differs", "What ran is not what the rules of the system give for these demands."],
  ["cannot-tell", "warn", "Cannot tell", "What is on record does not decide whose fault it is."],
  ["note", "info", "Noted", "Told for completeness."],
];

const FIRST = 25;

export function findingsSection(report: Report, jump: (finding: number) => void): HTMLElement {
  const section = h("section", { id: "findings", "aria-labelledby": "findings-title" }, h("h2", { id: "findings-title" }, "Findings"));
  if (report.findings.length === 0) {
    const said = report.runs.length > 0 ? "Nothing broke the model, no bound, and nothing disturbed the machine." : "No run, no findings.";
    section.append(h("p", { class: "empty" }, said));
    return section;
  }
  for (const [name, kind, word, meaning] of CLASSES) {
    const own = report.findings.map((finding, index) => ({ finding, index })).filter(({ finding }) => finding.class === name);
    if (own.length === 0) continue;
    const total = own.reduce((sum, { finding }) => sum + finding.count, 0);
    const heading = h("h3", {}, chip(kind, word), h("span", { class: "sub inline" }, `${count(total)} · ${meaning}`));
    section.append(heading, ...group(report, own, word, jump));
  }
  if (report.findings_omitted > 0) {
    section.append(h("p", { class: "note" }, `${count(report.findings_omitted)} further findings are not listed here.`));
  }
  return section;
}

type Numbered = { finding: Finding; index: number };

function group(report: Report, own: Numbered[], word: string, jump: (finding: number) => void): HTMLElement[] {
  const lasted = own.some(({ finding }) => finding.length_ns !== null);
  const line = (n: Numbered) => row(report, n, lasted, jump);
  const body = h("tbody", {}, ...own.slice(0, FIRST).map(line));
  const head = (text: string, kind: string) => h("th", { scope: "col", class: kind }, text);
  const table = h(
    "table",
    { class: "findings" },
    h("caption", { class: "hidden" }, word),
    h("thead", {}, h("tr", {}, head("When", "number"), head("What", "text"), head("Where", "text"), lasted && head("Lasted", "number"), head("Description", "text"))),
    body,
  );
  const scroll = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": word }, table);
  if (own.length <= FIRST) return [scroll];
  const more = h("button", {}, `Show all ${count(own.length)}`);
  more.addEventListener("click", () => {
    body.append(...own.slice(FIRST).map(line));
    more.remove();
  });
  return [scroll, more];
}

function row(report: Report, { finding, index }: Numbered, lasted: boolean, jump: (finding: number) => void): HTMLTableRowElement {
  const run = finding.run === null ? null : report.runs[finding.run];
  const at = finding.time_ns === null ? null : finding.time_ns - (run?.start_ns ?? 0);
  const when = at === null ? "–" : time(at, 6);
  const place = run?.timeline && at !== null;
  const where = [
    run?.kind === "simulated" ? "simulated" : null,
    finding.task === null ? null : (report.tasks[finding.task]?.name ?? `task ${finding.task}`),
    finding.job === null ? null : `job ${count(finding.job)}`,
    finding.cpu === null ? null : `CPU ${finding.cpu}`,
  ].filter(Boolean);
  const button = () =>
    h("button", { class: "link", title: `${exactTime(at ?? 0)}: show on the timeline`, onclick: () => jump(index) }, when);
  return h(
    "tr",
    {},
    h("td", { class: "number" }, place ? button() : when),
    h("th", { scope: "row", class: "text" }, finding.kind, finding.count > 1 && h("span", { class: "sub inline" }, `×${count(finding.count)}`)),
    h("td", { class: "text where" }, where.join(" · ") || "–"),
    lasted && h("td", { class: "number" }, finding.length_ns === null ? "–" : time(finding.length_ns)),
    h("td", { class: "text wide" }, finding.text),
  );
}
