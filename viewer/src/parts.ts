/** Tables of servers and devices: what they are beside what they did. */
import { chip, h } from "./dom";
import type { DeviceRow, DeviceRun, PackedLane, Report, RequestRun, Run, ServerRow, ServerRun } from "./types";
import { count, exactTime, percent, time } from "./units";

const VERDICT = { meets: ["good", "meets"], misses: ["bad", "misses"], unknown: ["warn", "unknown"] } as const;

type Show = (is: (lane: PackedLane) => boolean) => void;

/** The sections of servers and devices, as far as the system has some; `show` leads to a lane of the timeline. */
export function partsSections(report: Report, show: Show): HTMLElement[] {
  const sections: HTMLElement[] = [];
  if (report.servers.length > 0) {
    const heads = isEnforced(report) ? [...SERVERS, OVERDRAWN] : SERVERS;
    sections.push(section("servers", "Servers", heads, report.servers.map((server) => serverRow(report, server, show))));
  }
  if (report.devices.length > 0) {
    sections.push(section("devices", "Devices", DEVICES, report.devices.map((device) => deviceRow(report, device, show))));
  }
  return sections;
}

const SERVERS = ["Server", "Serves", "Budget", "Period", "Used", "Exhausted", "Came back"];
/** Of a real run alone: a simulation keeps budgets exactly. */
const OVERDRAWN = "Overdrawn at most";
const DEVICES = ["Device", "Proof", "Bound", "Deadline", "Requests", "Busy", "Longest wait", "Missed"];

type Cell = string | HTMLElement | (string | HTMLElement)[];

function section(id: string, title: string, heads: string[], rows: HTMLTableRowElement[]): HTMLElement {
  const head = heads.map((text) => h("th", { scope: "col", class: "text" }, text));
  const table = h("table", { class: "cards parts" }, h("caption", { class: "hidden" }, title), h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows));
  return h(
    "section",
    { id, "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, title),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table of ${id}` }, table),
  );
}

/** The first cell names the row; the others carry the head of their column for narrow screens. */
function row(heads: string[], name: Cell, cells: Cell[]): HTMLTableRowElement {
  const children = (cell: Cell) => (Array.isArray(cell) ? cell : [cell]);
  return h(
    "tr",
    {},
    h("th", { scope: "row", class: "text" }, ...children(name)),
    ...cells.map((cell, i) => h("td", { class: "text", "data-label": heads[i + 1] }, ...children(cell))),
  );
}

/** One line a run: "simulated: …". */
function perRun<T>(report: Report, of: (run: Run) => T | undefined, say: (it: T, run: Run) => string | HTMLElement): Cell {
  const lines = report.runs.flatMap((run) => {
    const it = of(run);
    return it === undefined ? [] : [h("span", { class: "line" }, h("span", { class: "sub inline-run" }, `${run.kind}: `), say(it, run))];
  });
  return lines.length > 0 ? lines : "–";
}

const when = (ns: number | null | undefined) => (ns === null || ns === undefined ? "–" : h("span", { title: exactTime(ns) }, time(ns)));

/** The name, as a way to its lane where there is one. */
function leading(report: Report, name: string, is: (lane: PackedLane) => boolean, show: Show): string | HTMLElement {
  if (!report.runs.some((run) => run.timeline?.lanes.some(is))) return name;
  return h("button", { class: "link", title: "Show it on the timeline", onclick: () => show(is) }, name);
}

function serverRow(report: Report, server: ServerRow, show: Show): HTMLTableRowElement {
  const of = (run: Run): ServerRun | undefined => run.servers.find((one) => one.name === server.name);
  const title = leading(report, server.name, (lane) => lane.kind === "server" && lane.name === server.name, show);
  const used = (one: ServerRun, run: Run) =>
    one.consumed_ns === null ? "not counted" : `${time(one.consumed_ns)}, ${percent(one.consumed_ns / Math.max(1, run.horizon_ns))} of the CPU`;
  const guaranteed = server.guaranteed === null ? null : server.guaranteed ? "certain in each period" : "not certain in each period";
  const overdrawn = (one: NonNullable<ServerRun["enforcement"]>) =>
    one.overshoot_ns_max === null ? "never" : `${time(one.overshoot_ns_max)} (median ${time(one.overshoot_ns_p50 ?? 0)})`;
  return row([...SERVERS, OVERDRAWN], [title, h("span", { class: "sub" }, `${server.kind} · CPU ${server.cpu}`)], [
    server.serves.join(", ") || "–",
    server.budget_ns === null ? "none" : [time(server.budget_ns), ...(guaranteed ? [h("span", { class: "sub" }, guaranteed)] : [])],
    when(server.period_ns),
    perRun(report, of, used),
    perRun(report, of, (one) => times(one.exhaustions)),
    perRun(report, of, (one) => times(one.replenishments)),
    ...(isEnforced(report) ? [perRun(report, (run) => of(run)?.enforcement, overdrawn)] : []),
  ]);
}

const isEnforced = (report: Report) => report.runs.some((run) => run.servers.some((one) => one.enforcement));

const times = (n: number) => (n === 0 ? "never" : n === 1 ? "once" : `${count(n)} times`);

function deviceRow(report: Report, device: DeviceRow, show: Show): HTMLTableRowElement {
  const of = (run: Run): DeviceRun | undefined => run.devices.find((one) => one.name === device.name);
  const asked = (run: Run): RequestRun[] | undefined => {
    const own = run.requests.filter((one) => device.requests.includes(one.name));
    return own.length > 0 ? own : undefined;
  };
  const own = (lane: PackedLane) => lane.kind === "device" && lane.name === device.name;
  const title = leading(report, device.name, (lane) => own(lane) || (lane.kind === "task" && lane.name === `${device.name} (driver)`), show);
  const [kind, word] = VERDICT[device.verdict];
  const total = (list: RequestRun[], field: "asked" | "answered" | "missed") => list.reduce((sum, one) => sum + one[field], 0);
  const left = (one: DeviceRun) => [one.dropped > 0 ? `${count(one.dropped)} dropped` : "", one.refused > 0 ? `${count(one.refused)} refused` : ""].filter(Boolean);
  const events = (one: DeviceRun) => [`${count(one.served)} of ${count(one.events)} events served`, ...left(one)].join(", ");
  const requests = (list: RequestRun[]) => `${count(total(list, "answered"))} of ${count(total(list, "asked"))} requests answered`;
  const longest = (run: Run) => {
    const waits = [...(asked(run) ?? []), ...(asked(run) ? [] : [of(run)])].map((one) => one?.response_ns_max ?? null).filter((ns) => ns !== null);
    return waits.length > 0 ? Math.max(...waits) : undefined;
  };
  const missed = (run: Run) => {
    const [events, requests] = [of(run)?.missed ?? 0, total(asked(run) ?? [], "missed")];
    if (!of(run) && !asked(run)) return undefined;
    return [events > 0 ? `${count(events)} of events` : "", requests > 0 ? `${count(requests)} of requests` : ""].filter(Boolean).join(", ");
  };
  return row(DEVICES, [title, h("span", { class: "sub" }, `served by ${device.service} · CPU ${device.cpu}`)], [
    device.deadline_ns === null ? "no deadline" : chip(kind, word),
    when(device.bound_ns),
    when(device.deadline_ns),
    perRun(report, (run) => asked(run) ?? of(run), (it) => (Array.isArray(it) ? requests(it) : events(it))),
    perRun(report, of, (one, run) => `${time(one.executed_ns)}, ${percent(one.executed_ns / Math.max(1, run.horizon_ns))} of the CPU`),
    perRun(report, longest, (ns) => time(ns)),
    perRun(report, missed, (words) => (words === "" ? "none" : h("span", { class: "alarm" }, words))),
  ]);
}
