/** What the signs of the timeline mean, and its keys. */
import { h, s } from "./dom";

type Draw = (box: SVGElement) => void;

export function legend(): HTMLElement {
  const item = (text: string, draw: Draw) => {
    const box = s("svg", { viewBox: "0 0 26 16", class: "sign", "aria-hidden": "true" });
    draw(box);
    return h("span", {}, box, text);
  };
  const rect = (box: SVGElement, name: string, y: number, height: number) =>
    box.append(s("rect", { x: 2, y, width: 22, height, class: name }));
  const path = (box: SVGElement, name: string, d: string) => box.append(s("path", { d, class: name }));
  return h(
    "div",
    { class: "legend signs" },
    item("executing", (box) => rect(box, "fill-run", 2, 12)),
    item("preempted or gave way", (box) => {
      rect(box, "fill-run pale", 6, 8);
      path(box, "hatch", "M2 14l8-8M8 14l8-8M14 14l8-8M20 14l4-4M2 8l2-2");
    }),
    item("suspended itself", (box) => {
      rect(box, "fill-run", 6, 1.5);
      rect(box, "fill-run", 12.5, 1.5);
    }),
    item("ready, waiting", (box) => rect(box, "fill-muted", 11, 3)),
    item("arrived, not noticed yet", (box) => path(box, "dots", "M2 12.5H24")),
    item("release", (box) => path(box, "stroke-ink", "M13 15V2M9.5 6L13 2l3.5 4")),
    item("deadline", (box) => path(box, "stroke-bad", "M13 1V14M9.5 10L13 14l3.5-4")),
    item("preemption point", (box) => path(box, "stroke-ink", "M13 1V15")),
    item("gave way there", (box) => path(box, "fill-ink", "M13 2l4 5-4 5-4-5z")),
    item("missed deadlines, counted", (box) => {
      box.append(s("rect", { x: 4, y: 1, width: 18, height: 14, rx: 3, class: "fill-bad" }), s("text", { x: 13, y: 12, class: "badge-text" }, "30"));
    }),
    item("missed deadline", (box) => path(box, "stroke-bad thick", "M7 3l10 10M17 3L7 13")),
    item("overrun, enforcement, loss", (box) => path(box, "fill-warn", "M13 2l6 11H7z")),
    item("foreign thread, interrupt", (box) => rect(box, "fill-foreign", 3, 10)),
    item("budget left, and none", (box) => {
      path(box, "fill-run pale", "M2 14V3L14 14z");
      path(box, "stroke-ink", "M2 3L14 14");
      path(box, "stroke-bad thick", "M14 14H24");
    }),
    item("finding", (box) => path(box, "fill-warn", "M13 2l5 6-5 6-5-6z")),
  );
}

const KEYS: [string, string][] = [
  ["wheel, + −", "zoom"],
  ["drag, ← →", "move (with Shift: farther)"],
  ["Shift + drag", "zoom to what is marked"],
  ["↑ ↓", "choose a lane"],
  [", .", "job before, next job of the lane"],
  ["w", "worst job"],
  ["m, Shift+m", "next, previous miss"],
  ["f, Shift+f", "next, previous finding"],
  ["Home", "whole run"],
  ["Esc", "choose nothing"],
];

export function help(id: string): HTMLElement {
  const list = h("dl", { class: "keys" });
  for (const [keys, meaning] of KEYS) list.append(h("div", {}, h("dt", {}, keys), h("dd", {}, meaning)));
  const zoomed = "Zoomed out, a column of pixels shows which share of its time went to each state.";
  return h("details", { class: "help" }, h("summary", {}, "Keys and mouse"), h("div", { id }, list, h("p", {}, zoomed)));
}
