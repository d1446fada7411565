/** Servers, devices and budgets, findings by cause, data as files, and nothing cut off. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { inflateRawSync } from "node:zlib";
import { decoded, launch, open } from "./browser.mjs";
import { load } from "./load.mjs";
import { documentOf, folder, pageWith, sample, simulated, skip } from "./pages.mjs";

let browser;
let small;
let servers;
let reservation;
let disk;
let network;

before(async () => {
  if (skip) return;
  small = sample("parts", 12_000);
  servers = simulated("servers", "viewer/test/systems/servers.toml", "--for", "400ms");
  reservation = simulated("reservation", "viewer/test/systems/reservation.toml", "--for", "400ms");
  disk = simulated("disk", "examples/split-io/system.toml", "--set", "platform.cpus=1", "--for", "1s");
  network = simulated("network", "examples/network-card/system.toml", "--set", "platform.cpus=1", "--for", "1s");
  browser = await launch();
});

after(() => browser?.close());

/** A table as text, a line of runs each after the other. */
const cells = (page, section) =>
  page.locator(`#${section} tbody tr`).evaluateAll((rows) => rows.map((row) => [...row.children].map((cell) => cell.innerText.replaceAll("\u202f", "").split("\n"))));

test("servers have a table: budget, period, what was used, how often it was exhausted", { skip }, async () => {
  const document = documentOf(servers);
  const { page, troubles, context } = await open(browser, servers);
  const rows = await cells(page, "servers");
  assert.deepEqual(rows[1], [
    ["panel-deferrable", "deferrable · CPU 1"], ["button-1"], ["3 ms", "certain in each period"], ["20 ms"],
    ["simulated: 21 ms, 5.3 % of the CPU"], ["simulated: 7 times"], ["simulated: 6 times"],
  ]);
  document.runs[0].servers.forEach((server, i) => {
    assert.ok(rows[i][4][0].startsWith(`simulated: ${server.consumed_ns / 1e6} ms`), rows[i][4][0]);
    assert.equal(rows[i][5][0], `simulated: ${server.exhaustions} times`);
  });
  await page.locator("#servers button.link").nth(1).click();
  await page.waitForFunction(() => document.querySelector(".readout").textContent === "Budget of panel-deferrable, simulated, 3 ms when full");
  assert.deepEqual(troubles, []);
  await context.close();
  // What a real run kept exactly, a simulation need not say.
  const measured = documentOf(servers);
  const enforcement = { method: "clock", exhausted: 3, overshoot_ns_p50: 6319, overshoot_ns_p99: 13_000, overshoot_ns_max: 13_090, share: 0.02, allowed_share: 0.15 };
  measured.runs.push({ ...measured.runs[0], kind: "measured", servers: measured.runs[0].servers.map((server) => ({ ...server, exhaustions: 1, enforcement })) });
  const both = await open(browser, pageWith(servers, "servers-measured", measured));
  const said = await cells(both.page, "servers");
  assert.deepEqual(said[2].slice(5), [["simulated: 6 times", "measured: once"], ["simulated: 5 times", "measured: 5 times"], ["measured: 13.09 us (median 6.319 us)"]]);
  await both.context.close();
});

test("devices have a table: requests, busy, the longest wait", { skip }, async () => {
  const [of, run] = [documentOf(disk).devices[0], documentOf(disk).runs[0]];
  const { page, context } = await open(browser, disk);
  const [row] = await cells(page, "devices");
  assert.deepEqual(row[0], ["disk", "served by thread · CPU 0"]);
  assert.equal(of.requests.length, 2);
  const asked = run.requests.reduce((sum, one) => sum + one.asked, 0);
  assert.deepEqual(row[4], [`simulated: ${asked} of ${asked} requests answered`]);
  assert.ok(asked >= 20);
  assert.match(row[5][0], /^simulated: 4 ms, 0\.4 % of the CPU$/);
  const longest = Math.max(...run.requests.map((one) => one.response_ns_max));
  assert.equal(row[6][0], `simulated: ${(longest / 1e6).toFixed(2)} ms`);
  assert.deepEqual(row[7], ["simulated: none"]);
  await page.locator("#devices button.link").click();
  await page.waitForFunction(() => /^disk(?: \(driver\))?, simulated/.test(document.querySelector(".readout").textContent));
  await context.close();
  const other = await open(browser, network);
  const [events] = await cells(other.page, "devices");
  assert.match(events[4][0], /^simulated: ([\d,]+) of \1 events served$/);
  await other.context.close();
});

test("lanes have the names of what they show", { skip }, async () => {
  for (const [file, wanted] of [
    [disk, ["player", "control", "disk (driver)", "disk", "CPU 0", "Kernel · CPU 0"]],
    [network, ["controller", "logger", "network (driver)", "CPU 0", "Kernel · CPU 0"]],
    [reservation, ["control", "video", "Budget of player", "CPU 0"]],
  ]) {
    const { page, troubles, context } = await open(browser, file);
    await decoded(page);
    assert.deepEqual(await page.locator(".lane-name").allTextContents(), wanted);
    assert.deepEqual(troubles, []);
    await context.close();
  }
});

test("a budget's lane falls by what the server's tasks used, and ends as often as the machine says", { skip }, async () => {
  const { decodeLane } = await load("lane");
  let lanes = 0;
  for (const file of [servers, reservation]) {
    const [run] = documentOf(file).runs;
    for (const lane of run.timeline.lanes.filter((one) => one.kind === "server")) {
      const { intervals, levels } = await decodeLane(lane, null);
      const { starts, ends, codes, values } = intervals;
      let [used, ended] = [0, 0];
      for (let i = 0; i < intervals.length; i++) {
        if (i > 0) assert.equal(starts[i], ends[i - 1], `${lane.name} has a gap`);
        if (codes[i] !== 1) continue;
        assert.ok(ends[i] - starts[i] <= values[i], `${lane.name} uses more than it has at ${starts[i]}`);
        used += ends[i] - starts[i];
        if (ends[i] - starts[i] === values[i]) ended++;
      }
      const server = run.servers.find((one) => one.name === lane.name);
      assert.equal(used, server.consumed_ns, lane.name);
      assert.equal(ended, server.exhaustions, lane.name);
      // The mean of a window is that of many instants.
      const [from, to, many] = [starts[0], ends.at(-1), 20_000];
      let sum = 0;
      for (let i = 0; i < many; i++) sum += levels.at(from + ((i + 0.5) / many) * (to - from));
      assert.ok(Math.abs(levels.mean(from, to) - sum / many) < 1e-3 * Math.max(...values), lane.name);
      lanes++;
    }
  }
  assert.equal(lanes, 4);
  const { page, context } = await open(browser, servers);
  await decoded(page);
  await page.evaluate(() => document.querySelector(".timeline").scrollIntoView({ behavior: "instant", block: "end" }));
  const label = await page.locator(".lane", { hasText: "Budget of panel-deferrable" }).boundingBox();
  const plot = await page.locator(".plot").boundingBox();
  const [{ to_ns }] = documentOf(servers).runs.map((run) => run.timeline);
  // Half a millisecond after the first button was pressed at 3 ms, 2.5 of 3 ms are left.
  await page.mouse.move(plot.x + (3.5e6 / to_ns) * plot.width, label.y + label.height / 2);
  assert.match(await page.locator(".tip").innerText(), /2\.[3-7]\d* ms of 3 ms left, being used/);
  await context.close();
});

test("the proof with costs and the one without stand side by side", { skip }, async () => {
  const document = documentOf(small);
  const { page, context } = await open(browser, small);
  const heads = await page.locator("table.tasks thead th").evaluateAll((all) => all.map((head) => head.firstChild.textContent));
  assert.deepEqual(heads.slice(0, 4), ["Task", "Proof with costs", "Bound", "Without costs"]);
  const rows = await cells(page, "tasks");
  document.tasks.forEach((task, i) => {
    assert.ok(Math.abs(parseFloat(rows[i][2][0]) * 1e6 - task.bound_ns) < 1e4);
    assert.ok(Math.abs(parseFloat(rows[i][3][0]) * 1e6 - task.without_costs.bound_ns) < 1e4);
    assert.equal(rows[i][3][1], "meets");
  });
  await context.close();
  document.tasks.forEach((task) => (task.without_costs = null));
  const plain = await open(browser, pageWith(small, "one-proof", document));
  assert.equal(await plain.page.locator("table.tasks .free").count(), 0);
  assert.match(await plain.page.locator("table.tasks thead").innerText(), /Proof\s/);
  await plain.context.close();
});

test("counts of jobs and misses are words, and bars have one scale", { skip }, async () => {
  const document = documentOf(small);
  document.runs[1].tasks[1].missed = 7;
  document.runs[1].tasks[1].judged = { released: 1_500, judged: 1_499 };
  document.runs[1].tasks[2].judged = { released: 3, judged: 3 };
  document.tasks[3].deadline_ns = 8 * document.runs[1].tasks[3].response_ns_max;
  document.runs[1].tasks[2].response_ns_max = 5 * document.tasks[2].deadline_ns;
  const { page, context } = await open(browser, pageWith(small, "words", document));
  const jobs = await page.locator("td.jobs").evaluateAll((all) => all.map((cell) => cell.innerText.split("\n")));
  document.tasks.forEach((_, i) => {
    const of = (run) => `${run.kind}: ${run.tasks[i].jobs} jobs, ${run.tasks[i].completed === run.tasks[i].jobs ? "" : `${run.tasks[i].completed || "none"} completed, `}${run.tasks[i].missed === 7 ? "1,499 of 1,500 judged, " : ""}${run.tasks[i].missed || "none"} missed`;
    assert.deepEqual(jobs[i], document.runs.map(of));
  });
  assert.equal(jobs[1][1], `measured: ${document.runs[1].tasks[1].jobs} jobs, 1,499 of 1,500 judged, 7 missed`);
  const bars = await page.locator(".bar").evaluateAll((all) =>
    all.map((bar) => {
      const { left, width } = bar.getBoundingClientRect();
      const middle = (name) => {
        const box = bar.querySelector(name).getBoundingClientRect();
        return (box.left + box.width / 2 - left) / width;
      };
      return { deadline: middle(".bar-deadline"), bound: bar.querySelector(".bar-bound").getBoundingClientRect().width / width, beyond: bar.querySelectorAll(".beyond").length };
    }),
  );
  for (const [i, task] of document.tasks.entries()) {
    assert.ok(Math.abs(bars[i].deadline - bars[0].deadline) < 0.005, "each deadline stands at the same place");
    const share = Math.min(1, (task.bound_ns / task.deadline_ns) * bars[0].deadline);
    assert.ok(Math.abs(bars[i].bound - share) < 0.01, `${task.name}: ${bars[i].bound}, not ${share}`);
    assert.equal(bars[i].beyond, i === 2 ? 1 : 0, "what lies beyond the scale says so");
  }
  await context.close();
});

test("findings are grouped by cause and can be searched", { skip }, async () => {
  const document = documentOf(small);
  document.groups[0].count = 4711;
  document.findings_omitted = 4704;
  const { page, troubles, context } = await open(browser, pageWith(small, "causes", document));
  const groups = page.locator("#findings details.finding-group");
  assert.equal(await groups.count(), 2);
  const summary = async (i) => (await groups.nth(i).locator("summary").innerText()).replaceAll("\u202f", "").replace(/\s+/g, " ");
  assert.match(await summary(0), /^foreign thread ?kworker\/1:2 ?4,711 findings · at most [\d.]+ ms beyond what is allowed$/);
  assert.match(await summary(1), /^deadline missed ?attitude control ?1 finding · /);
  const search = page.getByLabel("Search the findings");
  await search.fill("KWORKER");
  const listed = document.findings.filter((finding) => finding.group === 0).length;
  assert.match(await page.locator(".search [role=status]").textContent(), new RegExp(`^${listed} listed findings match`));
  assert.equal(await groups.nth(0).isVisible(), true);
  assert.equal(await groups.nth(1).isVisible(), false);
  assert.equal(await groups.nth(0).locator("tbody tr").count(), listed);
  await search.fill("missed its deadline");
  assert.deepEqual([await groups.nth(0).isVisible(), await groups.nth(1).isVisible()], [false, true]);
  await search.fill("nobody says this");
  assert.deepEqual([await groups.nth(0).isVisible(), await groups.nth(1).isVisible()], [false, false]);
  await search.fill("");
  assert.deepEqual([await groups.nth(0).isVisible(), await groups.nth(1).isVisible()], [true, true]);
  assert.match(await page.locator("#findings").innerText(), /4[\s,]704 further findings are counted above and not listed/u);
  assert.deepEqual(troubles, []);
  await context.close();
});

/** What a button saves. */
async function saved(page, label) {
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: label }).click()]);
  return { name: download.suggestedFilename(), text: readFileSync(await download.path(), "utf8") };
}

test("the data can be saved as JSON and CSV", { skip }, async () => {
  const document = documentOf(servers);
  document.tasks[0].name = 'servo, "left"';
  const file = pageWith(servers, "saved", document);
  const { page, troubles, context } = await open(browser, file);
  const json = await saved(page, "Verdict (JSON)");
  assert.equal(json.name, "servers-of-three-kinds-loop.json");
  assert.equal(json.text, inflateRawSync(Buffer.from(document.json[1], "base64")).toString());
  assert.equal(JSON.parse(json.text).closing.text, document.closing.text);
  const tasks = await saved(page, "Tasks (CSV)");
  const lines = tasks.text.split("\r\n");
  assert.equal(lines.length, document.tasks.length + 2);
  assert.ok(lines[1].startsWith('simulated,"servo, ""left""",0,50,10000000,2000000,'), lines[1]);
  const column = (line, name) => line.split(",")[lines[0].split(",").indexOf(name)];
  document.tasks.slice(1).forEach((task, i) => {
    const seen = document.runs[0].tasks[i + 1];
    const wanted = { task: task.name, bound_ns: task.bound_ns ?? "", jobs: seen.jobs, missed: seen.missed, response_ns_max: seen.response_ns_max };
    for (const [name, value] of Object.entries(wanted)) assert.equal(column(lines[i + 2], name), String(value), `${name} of ${task.name}`);
  });
  const jobs = (await saved(page, "Jobs (CSV)")).text.trim().split("\r\n");
  assert.equal(jobs[0], "run,task,job,arrival_ns,ready_ns,response_ns,executed_ns,deadline_ns,missed");
  assert.equal(jobs.length - 1, document.runs[0].tasks.reduce((sum, task) => sum + task.jobs, 0));
  const late = jobs.filter((line) => line.startsWith("simulated,late-1,"));
  assert.equal(late[0], "simulated,late-1,0,0,0,16000000,9000000,12000000,true");
  assert.equal(late.filter((line) => line.endsWith(",true")).length, 10);
  assert.equal(jobs.filter((line) => line.endsWith(",true")).length, 10);
  assert.deepEqual(troubles, []);
  await context.close();
});

/** Every visible text that reaches beyond the window or out of what clips it. */
const cutOff = (page) =>
  page.evaluate(() => {
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const width = document.documentElement.clientWidth;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!node.textContent.trim() || !element || element.closest("script, style, svg, .hidden, .skip, [hidden]") || !element.checkVisibility({ visibilityProperty: true })) continue;
      if (getComputedStyle(element).clipPath !== "none" || element.closest("thead")?.offsetHeight === 1) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const box of range.getClientRects()) {
        if (box.width < 1) continue;
        let [left, right, top, bottom] = [0, width, -Infinity, Infinity];
        for (let above = element; above; above = above.parentElement) {
          const style = getComputedStyle(above);
          if (style.overflowX === "visible") continue;
          const clip = above.getBoundingClientRect();
          [left, right] = [Math.max(left, clip.left), Math.min(right, clip.right)];
          if (style.overflowY !== "visible") [top, bottom] = [Math.max(top, clip.top), Math.min(bottom, clip.bottom)];
        }
        if (box.left < left - 1 || box.right > right + 1 || box.top < top - 2 || box.bottom > bottom + 2) found.push(`${element.tagName.toLowerCase()}.${element.className}: ${node.textContent.slice(0, 50)}`);
      }
    }
    return [...new Set(found)];
  });

test("nothing is cut off at 1280 pixels, on a phone, in print", { skip }, async () => {
  const long = documentOf(small);
  const name = "estimator of the left front wheel's speed (with slip)";
  long.tasks[0].name = name;
  for (const run of long.runs) {
    run.tasks[0].name = name;
    run.timeline.lanes.find((lane) => lane.kind === "task" && lane.index === 0).name = name;
  }
  long.groups[0].subject = "kworker/u16:4-events_power_efficient_and_more";
  long.closing.missed = [{ name, count: 12_345 }];
  const files = { small, servers, disk, network, long: pageWith(small, "long-names", long) };
  for (const [what, file] of Object.entries(files)) {
    for (const [width, height, media] of [[1280, 720, "screen"], [390, 844, "screen"], [718, 1000, "print"]]) {
      const { page, context } = await open(browser, file, { viewport: { width, height } });
      await decoded(page);
      await page.evaluate(() => document.querySelectorAll("details").forEach((one) => (one.open = true)));
      await page.emulateMedia({ media });
      if (media === "print") await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
      await page.waitForTimeout(200);
      assert.deepEqual(await cutOff(page), [], `${what} at ${width} (${media})`);
      const content = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(content <= width, `${what} is ${content} wide at ${width} (${media})`);
      await page.evaluate(() => scrollTo({ top: 0, behavior: "instant" }));
      await page.screenshot({ path: `${folder}/whole-${what}-${width}.png`, fullPage: true });
      await context.close();
    }
  }
});
