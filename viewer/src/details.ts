/** How to repeat it: command, versions, machine, runs, the system file, notes. */
import { h } from "./dom";
import type { Report, Run } from "./types";
import { count, time } from "./units";

export function detailsSection(report: Report): HTMLElement {
  const { provenance } = report;
  const section = h(
    "section",
    { id: "details", "aria-labelledby": "details-title" },
    h("h2", { id: "details-title" }, "How to repeat it"),
  );
  if (provenance.command) section.append(command(provenance.command));
  const columns = h("div", { class: "columns" });
  columns.append(pairs("Versions", [...provenance.versions, ...made(provenance.created)]));
  columns.append(pairs("Machine", provenance.machine, "machine"));
  for (const run of report.runs) columns.append(pairs(run.kind === "simulated" ? "Simulated run" : "Measured run", facts(run)));
  section.append(columns);
  const notes = [...report.notes, ...report.runs.flatMap((run) => run.notes.map((note) => `${run.kind}: ${note}`))];
  if (notes.length > 0) section.append(h("h3", {}, "Notes"), h("ul", { class: "notes" }, ...notes.map((note) => h("li", {}, note))));
  if (report.system_file) {
    section.append(
      h("h3", { id: "system-file" }, "System file"),
      h("details", { open: report.system_file.length < 1500 }, h("summary", {}, "normalised: defaults written out, overrides applied"), h("pre", { tabindex: "0" }, report.system_file)),
    );
  }
  return section;
}

function made(created: string): [string, string][] {
  return created ? [["Report made", created]] : [];
}

function facts(run: Run): [string, string][] {
  return [
    ["Back end", run.backend],
    ["Horizon", time(run.horizon_ns)],
    ["Seed", String(run.seed)],
    ["Events", count(run.events)],
    ["Events lost", count(run.events_lost)],
    ["Events on the timeline", count(run.timeline?.events_kept ?? 0)],
  ];
}

function pairs(title: string, list: [string, string][], id?: string): HTMLElement {
  const box = h("div", {}, h("h3", { id }, title));
  if (list.length === 0) box.append(h("p", { class: "empty" }, "not recorded"));
  const body = h("dl", { class: "pairs" });
  for (const [name, value] of list) body.append(h("dt", {}, name), h("dd", {}, value));
  box.append(body);
  return box;
}

function command(text: string): HTMLElement {
  const button = h("button", { class: "copy" }, "Copy");
  button.addEventListener("click", () => {
    navigator.clipboard.writeText(text).then(
      () => (button.textContent = "Copied"),
      () => (button.textContent = "Select it and copy"),
    );
  });
  return h("div", { class: "command" }, h("pre", { tabindex: "0" }, text), button);
}
