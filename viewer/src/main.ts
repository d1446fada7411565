/** Builds the page from the document inside it. */
import { chartsSection } from "./charts";
import { detailsSection } from "./details";
import { h } from "./dom";
import { findingsSection } from "./findings";
import { downloads } from "./download";
import { partsSections } from "./parts";
import { tasksSection } from "./tasks";
import { setUpTheme } from "./theme";
import { TimelineView } from "./timeline";
import type { Report } from "./types";
import { verdictSection } from "./verdict";

function build(report: Report): void {
  const theme = h("button", { class: "theme", "aria-label": "Dark colours" });
  const main = document.querySelector("main");
  if (!main) return;
  const nav = h("nav", { "aria-label": "Sections" });
  document.body.prepend(
    h("a", { class: "skip", href: "#verdict" }, "Skip to the verdict"),
    h("header", { class: "bar-top" }, h("span", { class: "mark" }, "horolog"), nav, theme),
  );
  setUpTheme(theme);
  const timeline = new TimelineView(report);
  const verdict = verdictSection(report, () => void timeline.showFirstMiss());
  verdict.append(downloads(report, () => timeline.decodedRows()));
  const sections = [
    verdict,
    tasksSection(report, (task) => void timeline.showWorst(task)),
    ...partsSections(report, (is) => void timeline.showLane(is)),
    timeline.element,
    chartsSection(report),
    findingsSection(report, (finding) => void timeline.showFinding(finding)),
    detailsSection(report),
  ];
  main.replaceChildren(...sections);
  for (const section of sections) {
    const name = section === verdict ? "Verdict" : (section.querySelector("h2")?.textContent ?? section.id);
    nav.append(h("a", { href: `#${section.id}` }, name));
  }
  timeline.start();
  document.documentElement.dataset["built"] = "true";
}

const source = document.getElementById("horolog-data")?.textContent ?? "null";
const report = JSON.parse(source) as Report | null;
if (report && typeof report === "object") build(report);
