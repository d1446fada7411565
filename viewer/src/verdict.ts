/** The verdict, first on the page: a sentence, two chips, what qualifies it, and the quick facts. */
import { chip, h, icon } from "./dom";
import { rowOf } from "./tasks";
import type { Closing, Report } from "./types";
import { count, time } from "./units";

const PROOF = {
  proved: ["good", "Proved"],
  "not-proved": ["bad", "Not proved"],
  unknown: ["warn", "Not decided"],
} as const;

const RUN = {
  held: ["good", "Run held"],
  missed: ["bad", "Deadlines missed"],
  "model-violated": ["bad", "Model violated"],
  "bound-violated": ["bad", "Bound violated"],
  disturbed: ["warn", "Machine disturbed"],
  undecided: ["warn", "Run not decided"],
} as const;

/** `goTo` leads to the first missed deadline on the timeline. */
export function verdictSection(report: Report, goToMiss: () => void): HTMLElement {
  const { verdict } = report;
  const [proofKind, proofWord] = PROOF[verdict.proof];
  const chips = h("p", { class: "chips", id: "verdict-chips" }, chip(proofKind, proofWord));
  if (verdict.run) {
    const [kind, word] = RUN[verdict.run];
    chips.append(chip(kind, word));
  } else {
    chips.append(chip("info", "Not run"));
  }
  if (verdict.best_effort) chips.append(chip("warn", "Best effort: normal scheduling"));
  const section = h(
    "section",
    { id: "verdict", "aria-labelledby": "verdict-title", class: `verdict verdict-${worst(report)}` },
    h("h1", { id: "verdict-title" }, report.system || "unnamed system"),
    h("p", { class: "eyebrow" }, [report.policy, runsInWords(report)].filter(Boolean).join(" · ")),
    ...head(report, goToMiss),
    chips,
  );
  const qualifiers = [...verdict.qualifiers, ...truncations(report)];
  if (qualifiers.length > 0) {
    section.append(
      h("ul", { class: "qualifiers" }, ...qualifiers.map((text) => h("li", {}, icon("info"), h("span", {}, text)))),
    );
  }
  if (report.facts.length > 0) section.append(facts(report));
  return section;
}

const WORD: Record<string, "good" | "bad" | "warn"> = { holds: "good", no: "bad", undecided: "warn", "not-allowed": "warn" };

/** What was missed, the cause and the remedy, in the words of the closing line; each leads to its place. */
function head(report: Report, goToMiss: () => void): HTMLElement[] {
  const { closing } = report;
  if (!closing) return [h("p", { class: "sentence", id: "verdict-cause" }, report.plain_words)];
  const kind = closing.missed.length > 0 ? "bad" : (WORD[closing.word] ?? "warn");
  const missed = missedInWords(closing);
  const badge = h(
    "a",
    { class: `badge chip-${kind}`, id: "verdict-badge", href: missed ? "#timeline" : "#tasks", onclick: () => missed && goToMiss() },
    icon(kind),
    h("span", {}, missed ?? closing.word.replace("-", " ")),
  );
  const parts: HTMLElement[] = [badge];
  const cause = causeInWords(closing);
  const link = (id: string, place: string, text: string) =>
    h("a", { id, href: place, onclick: () => place === "#timeline" && goToMiss() }, text);
  if (cause) parts.push(h("p", { class: "sentence" }, link("verdict-cause", placeOfCause(report, closing), cause)));
  const text = helpInWords(closing);
  if (text) {
    const help = link("verdict-remedy", placeOfHelp(report, closing, text), text);
    parts.push(h("p", { class: "remedy" }, h("span", { class: "sub inline" }, "Help"), help));
  }
  return parts;
}

/** What a proof says is in the table of tasks, and so is who missed where nothing was found; all else is a finding. */
export function placeOfCause(report: Report, closing: Closing): string {
  const { text, missed } = closing;
  const unproved = unprovedTask(report, text);
  if (unproved) return rowOf(report, unproved) ?? "#tasks";
  if (closing.word === "holds" || /^(?:the proof fails|not proved|no test )/.test(text)) return "#tasks";
  const failed = report.tasks.find(({ name }) => text.startsWith(`${name}: `) && / returned an error/.test(text));
  if (failed) return rowOf(report, failed.name) ?? "#tasks";
  // Of these only the jobs are known.
  if (missed.length > 0 && /^(?:in the simulation|cause not known|$)/.test(causeInWords(closing))) {
    return missed.map(({ name }) => rowOf(report, name)).find((row) => row !== null) ?? "#timeline";
  }
  return report.findings.length > 0 || report.groups.length > 0 ? "#findings" : "#tasks";
}

/** Where what the help names is found; `text` is the help as the page says it. */
export function placeOfHelp(report: Report, closing: Closing, text: string): string {
  if (text !== closing.help) return closing.missed.length > 0 ? "#timeline" : "#findings";
  // What to change at the machine stands beside what is known of it.
  if (/`horolog doctor\b/.test(text)) return "#machine";
  if (/^every hard deadline .*holds with /.test(text)) {
    const named = report.tasks.map(({ name }) => ({ name, at: `${text},`.indexOf(` for ${name},`) })).filter(({ at }) => at >= 0);
    const first = named.sort((a, b) => a.at - b.at)[0]?.name ?? unprovedTask(report, closing.text);
    return (first && rowOf(report, first)) || "#tasks";
  }
  const again = /^(?:run|record|simulate) it /.test(text);
  return report.system_file && !again ? "#system-file" : "#details";
}

/** The task that the closing line says is not proved. */
function unprovedTask(report: Report, text: string): string | null {
  const is = (name: string) => [" misses in the proof", " has no bound in the proof"].some((said) => text.startsWith(name + said));
  return report.tasks.find(({ name }) => is(name))?.name ?? null;
}

/** How many names a line lists, as the closing line does. */
const NAMED = 3;

function missedInWords(closing: Closing): string | null {
  const all = closing.missed.reduce((sum, one) => sum + one.count, 0);
  if (all === 0) return null;
  return `${count(all)} ${all === 1 ? "deadline" : "deadlines"} missed: ${listed(closing.missed)}`;
}

/** Who missed how many, the first ones. */
function listed(missed: Closing["missed"]): string {
  const names = missed.slice(0, NAMED).map((one) => `${one.name} ${count(one.count)}`);
  const more = missed.length - NAMED;
  if (more > 0) names.push(`${count(more)} ${more === 1 ? "task" : "tasks"} more`);
  return names.join(", ");
}

/** The closing line's text, less what the badge has said already; empty where nothing is left. */
export function causeInWords(closing: Closing): string {
  const said = /^[\d,]+ deadlines? missed \((?:[^()]|\([^()]*\))*\)(?:, (?=by )|; | (?=in the simulation)|$)/.exec(closing.text);
  if (said && closing.missed.length > 0) return closing.text.slice(said[0].length);
  // Behind a cause those are listed that are not its own subject.
  const lists = [closing.missed, ...closing.missed.map((own) => closing.missed.filter((one) => one !== own))];
  const last = lists.map((missed) => `; missed: ${listed(missed)}`).find((list) => list.length > 10 && closing.text.endsWith(list));
  return last ? closing.text.slice(0, -last.length) : closing.text;
}

/** The remedy; who reads it here has the page open already, which is led to its place instead. */
export function helpInWords(closing: Closing): string | null {
  const here = closing.missed.length > 0 ? "look at the first missed job" : "look at the findings";
  return closing.help?.replace(/find the cause in .*report\.html/, here) ?? null;
}

function worst(report: Report): "good" | "bad" | "warn" {
  const kinds: string[] = [PROOF[report.verdict.proof][0]];
  if (report.verdict.run) kinds.push(RUN[report.verdict.run][0]);
  if (report.closing) kinds.push(WORD[report.closing.word] ?? "warn");
  if (report.closing && report.closing.missed.length > 0) kinds.push("bad");
  return kinds.includes("bad") ? "bad" : kinds.includes("warn") ? "warn" : "good";
}

function runsInWords(report: Report): string {
  return report.runs
    .map((run) => `${time(run.horizon_ns, 3)} ${run.kind === "simulated" ? "simulated" : "run for real"}`)
    .join(", ");
}

/** Losses and limits are never silent. */
function truncations(report: Report): string[] {
  const out: string[] = [];
  for (const run of report.runs) {
    const name = run.kind === "simulated" ? "simulated run" : "measured run";
    if (run.events_lost > 0) out.push(`The record of the ${name} lost ${count(run.events_lost)} events.`);
    const line = run.timeline;
    if (line && line.events_dropped > 0) {
      const all = "Tables and distributions count them all.";
      const kept = `first ${count(line.events_kept)} events kept, ${count(line.events_dropped)} dropped`;
      out.push(`Timeline of the ${name}: ${kept}. ${all}`);
    }
  }
  return out;
}

function facts(report: Report): HTMLElement {
  const list = h("dl", { class: "facts" });
  for (const fact of report.facts) {
    list.append(
      h("div", {}, h("dt", {}, fact.name), h("dd", {}, fact.value), fact.note && h("dd", { class: "note" }, fact.note)),
    );
  }
  return list;
}
