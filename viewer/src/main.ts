/** Builds the page from the document inside it. */
import { chartsSection } from "./charts";
import { detailsSection } from "./details";
import { h } from "./dom";
import { findingsSection } from "./findings";
import { tasksSection } from "./tasks";
import { setUpTheme } from "./theme";
import { TimelineView } from "./timeline";
import type { Report } from "./types";
import { verdictSection } from "./verdict";

const SECTIONS: [string, string][] = [
  ["verdict", "Verdict"],
  ["tasks", "Tasks"],
  ["timeline", "Timeline"],
  ["distributions", "Response times"],
  ["findings", "Findings"],
  ["details", "How to repeat it"],
];

function build(report: Report): void {
  const theme = h("button", { class: "theme", "aria-label": "Dark colours" });
  const main = document.querySelector("main");
  if (!main) return;
  const nav = h("nav", { "aria-label": "Sections" });
  for (const [id, name] of SECTIONS) nav.append(h("a", { href: `#${id}` }, name));
  document.body.prepend(
    h("a", { class: "skip", href: "#verdict" }, "Skip to the verdict"),
    h("header", { class: "bar-top" }, h("span", { class: "mark" }, "horolog"), nav, theme),
  );
  setUpTheme(theme);
  const timeline = new TimelineView(report);
  main.replaceChildren(
    verdictSection(report),
    tasksSection(report, (task) => void timeline.showWorst(task)),
    timeline.element,
    chartsSection(report),
    findingsSection(report, (finding) => void timeline.showFinding(finding)),
    detailsSection(report),
  );
  timeline.start();
  document.documentElement.dataset["built"] = "true";
}

const source = document.getElementById("horolog-data")?.textContent ?? "null";
const report = JSON.parse(source) as Report | null;
if (report && typeof report === "object") build(report);
