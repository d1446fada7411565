/** What a reader sees first: what was missed, why, and what to do; with and without scripts. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { inflateRawSync } from "node:zlib";
import { launch, open } from "./browser.mjs";
import { load } from "./load.mjs";
import { documentOf, folder, pageWith, sample, simulated, skip } from "./pages.mjs";

let browser;
let small;

before(async () => {
  if (skip) return;
  small = sample("head", 12_000);
  browser = await launch();
});

after(() => browser?.close());

/** The JSON of the contract inside a page. */
const contractOf = (document) => JSON.parse(inflateRawSync(Buffer.from(document.json[1], "base64")).toString());

/** Closing lines as the contract shows them, and one with names that are long. */
const CLOSINGS = [
  {
    word: "no", exit: 1, missed: [{ name: "motor", count: 7 }, { name: "imu", count: 2 }],
    text: "9 deadlines missed (motor 7, imu 2), by the machine: kworker/1:2 took CPU 1 for 2.693 ms",
    help: "isolate CPU 1 (`horolog doctor`); on a shared machine gate with `--gate proof,model`",
  },
  {
    word: "no", exit: 1, missed: [{ name: "motor", count: 2 }],
    text: "model violated by imu: 7 of 500 jobs executed above wcet 1 ms (worst 1.42 ms); missed: motor 2",
    help: "raise wcet to 1.5 ms (motor's bound becomes 1.9 ms of 2 ms), or find the cause in horolog-out/report.html",
  },
  { word: "no", exit: 1, missed: [], text: "motor misses in the proof with machine.toml: 2.138 ms of 2 ms; without costs 1.6 ms; all 1,500 measured jobs in time", help: null },
  { word: "undecided", exit: 4, missed: [], text: "control judged in 41 of 100 jobs, 90 % asked: records lost (59 jobs)", help: "run it again (`horolog loop --retries 3`), or for longer" },
  { word: "not-allowed", exit: 3, missed: [], text: "proved and simulated, not run: SCHED_FIFO needs CAP_SYS_NICE", help: "`horolog doctor` says how to allow it; `--gate proof` asks for the proof alone" },
  { word: "holds", exit: 0, missed: [], text: "3 tasks proved with machine.toml, 85 of 85 jobs judged, no deadline missed", help: null },
  {
    word: "no", exit: 1, missed: [{ name: "left front wheel speed estimator", count: 1204 }, { name: "battery (cell 4)", count: 1 }],
    text: "1,205 deadlines missed (left front wheel speed estimator 1,204, battery (cell 4) 1), by the machine: nothing",
    help: "isolate CPU 1",
  },
  {
    word: "no", exit: 1,
    missed: [50, 50, 50, 50, 50, 50, 3, 1, 1, 1, 1, 1].map((count, i) => ({ name: `sensor fusion stage ${((i + 9) % 12) + 1}`, count })),
    text: "308 deadlines missed (sensor fusion stage 10 50, sensor fusion stage 11 50, sensor fusion stage 12 50, 9 tasks more), by the machine: the kernel held the real-time thread sensor fusion s back for 40.988414 ms (RT throttling or the fair server) (in the busy window of sensor fusion stage 1 job 49)",
    help: "isolate CPU 1 (`horolog doctor`); on a shared machine gate with `--gate proof,model`",
  },
  { word: "no", exit: 1, missed: ["a", "b", "c", "d"].map((name) => ({ name, count: 1 })), text: "4 deadlines missed (a 1, b 1, c 1, 1 task more) in the simulation", help: "find the cause in horolog-out/report.html" },
];

const BADGES = [
  "9 deadlines missed: motor 7, imu 2", "2 deadlines missed: motor 2", "no", "undecided", "not allowed", "holds",
  "1,205 deadlines missed: left front wheel speed estimator 1,204, battery (cell 4) 1",
  "308 deadlines missed: sensor fusion stage 10 50, sensor fusion stage 11 50, sensor fusion stage 12 50, 9 tasks more",
  "4 deadlines missed: a 1, b 1, c 1, 1 task more",
];

const SIZES = [{ width: 1280, height: 720 }, { width: 390, height: 844 }];

test("badge, cause and remedy lie in the first 400 pixels, in the words of the closing line", { skip }, async () => {
  for (const [i, given] of CLOSINGS.entries()) {
    const document = documentOf(small);
    document.closing = { ...given, causes: [] };
    const file = pageWith(small, `closing-${i}`, document);
    for (const viewport of SIZES) {
      const { page, troubles, context } = await open(browser, file, { viewport });
      const ids = ["#verdict-badge", "#verdict-cause", ...(given.help ? ["#verdict-remedy"] : [])];
      const boxes = [];
      for (const id of ids) boxes.push(await page.locator(id).boundingBox());
      for (const [n, box] of boxes.entries()) {
        assert.ok(box.y >= 0 && box.y + box.height <= 400, `${ids[n]} of ${i} ends at ${box.y + box.height} of ${viewport.width}x${viewport.height}`);
        assert.ok(box.x >= 0 && box.x + box.width <= viewport.width, `${ids[n]} of ${i} is cut off`);
        if (n > 0) assert.ok(box.y >= boxes[n - 1].y + boxes[n - 1].height, `${ids[n]} of ${i} stands below the one before`);
      }
      assert.equal(await page.textContent("#verdict-badge"), BADGES[i]);
      const cause = await page.textContent("#verdict-cause");
      assert.ok(given.text.includes(cause) && cause.length > 10, `${cause} is not of ${given.text}`);
      const at = given.text.indexOf(cause);
      const left = `${given.text.slice(0, at)}|${given.text.slice(at + cause.length)}`;
      assert.ok(/^(?:[\d,]+ deadlines? missed \(.*\),? \||\|(?:; missed: .*)?)$/.test(left), `${left} is not said`);
      assert.equal(await page.locator("#verdict-remedy").count(), given.help ? 1 : 0);
      const help = given.help?.replace("find the cause in horolog-out/report.html", "look at the first missed job");
      if (help) assert.equal(await page.textContent("#verdict-remedy"), help);
      for (const id of ids) {
        const target = await page.getAttribute(id, "href");
        assert.equal(await page.locator(target).count(), 1, `${id} leads to ${target}`);
      }
      const [ink, bad] = await page.evaluate(() => {
        const probe = document.body.appendChild(document.createElement("i"));
        probe.style.setProperty("color", "var(--bad)");
        return [getComputedStyle(document.querySelector("#verdict-badge")).color, getComputedStyle(probe).color];
      });
      assert.equal(ink === bad, given.missed.length > 0 || given.word === "no", `the badge of ${i} is ${ink}`);
      assert.deepEqual(troubles, []);
      await context.close();
    }
  }
});

test("the badge leads to the first missed deadline", { skip }, async () => {
  const { page, context } = await open(browser, small, { viewport: SIZES[0] });
  await page.locator("#verdict-badge").click();
  await page.waitForFunction(() => /deadline missed by/.test(document.querySelector(".readout").textContent));
  await context.close();
});

test("the page of a loop says what its JSON says", { skip }, async () => {
  const document = documentOf(simulated("servers", "viewer/test/systems/servers.toml", "--for", "400ms"));
  const contract = contractOf(document);
  assert.equal(contract.schema, "horolog.loop/1");
  const { word, exit, text, help, missed, causes } = contract.closing;
  assert.deepEqual(document.closing, { word, exit, text, help, missed: missed ?? [], causes });
  assert.deepEqual(missed, [{ name: "late-1", count: 10 }]);
  assert.equal(contract.simulated.tasks[4].missed, 10);
  const { page, context } = await open(browser, `${folder}/servers/report.html`, { viewport: SIZES[0] });
  assert.equal(await page.textContent("#verdict-badge"), "10 deadlines missed: late-1 10");
  assert.equal(text, "10 deadlines missed (late-1 10) in the simulation");
  assert.equal(await page.textContent("#verdict-cause"), "in the simulation", "the badge has said the rest");
  assert.equal(await page.getAttribute("#verdict-cause", "href"), "#task-4");
  assert.equal(await page.textContent("#verdict-remedy"), help.replace(/find the cause in .*report\.html/, "look at the first missed job"));
  await context.close();
});

/** The page's own tasks are motor, imu and "motor 2"; findings of the machine are there in every case. */
test("cause and help lead to where they are shown", async () => {
  const { placeOfCause, placeOfHelp } = await load("verdict");
  const report = { tasks: ["motor", "imu", "motor 2"].map((name) => ({ name })), findings: [{}], groups: [], system_file: "…" };
  const cause = (text, ...names) => placeOfCause(report, { word: "no", text, missed: names.map((name) => ({ name, count: 1 })) });
  assert.equal(cause("imu misses in the proof with machine.toml: 2.138 ms of 2 ms; all 1,500 measured jobs in time"), "#task-1");
  assert.equal(cause("motor 2 misses in the proof: 3 ms of 2 ms; 1 task more"), "#task-2");
  assert.equal(cause("motor has no bound in the proof with machine.toml; without costs 1 ms"), "#task-0");
  assert.equal(cause("the proof fails with machine.toml"), "#tasks");
  assert.equal(cause("imu: 376 of 376 jobs returned an error"), "#task-1");
  assert.equal(cause("1 deadline missed (imu 1) in the simulation", "imu"), "#task-1");
  assert.equal(cause("1 deadline missed (imu 1); cause not known", "imu"), "#task-1");
  assert.equal(cause("1 deadline missed (disk 1); cause not known", "disk"), "#timeline", "a device has no row");
  assert.equal(cause("1 deadline missed (imu 1), by the machine: b took CPU 1", "imu"), "#findings");
  assert.equal(cause("model violated by imu: 7 of 500 jobs executed above wcet 1 ms; missed: motor 2", "motor"), "#findings");
  const help = (help, text = "motor misses in the proof: 3 ms of 2 ms", said = help) => placeOfHelp(report, { help, text, missed: [] }, said);
  assert.equal(help("isolate CPU 1 (`horolog doctor`); on a shared machine gate with `--gate proof,model`"), "#machine");
  assert.equal(help("`horolog doctor` says how to allow it"), "#machine");
  assert.equal(help("every hard deadline holds with a wcet of at most 1 ms for motor 2, or a wcet of at most 2 ms for imu"), "#task-2");
  assert.equal(help("every hard deadline of CPU 1 holds with no segment of imu longer than 1 ms"), "#task-0", "the one that misses");
  assert.equal(help("run it again (`horolog loop --retries 3`), or for longer"), "#details");
  assert.equal(help("raise the wcet of each segment that grew"), "#system-file");
  assert.equal(help("find the cause in out/report.html", "", "look at the findings"), "#findings");
  const missed = { help: "find the cause in out/report.html", text: "", missed: [{ name: "imu", count: 1 }] };
  assert.equal(placeOfHelp(report, missed, "look at the first missed job"), "#timeline");
});

test("a proof that fails beside gaps of the machine leads to the task's row, isolation to the machine", { skip }, async () => {
  const document = documentOf(small);
  assert.ok(document.findings.length > 0);
  const { name } = document.tasks[2];
  document.closing = {
    word: "no", exit: 1, missed: [], causes: [],
    text: `${name} misses in the proof with costs of this minute: 23.49 ms of 20 ms`,
    help: `every hard deadline holds with a wcet of at most 15.5702 ms for ${name}`,
  };
  for (const viewport of SIZES) {
    const { page, context } = await open(browser, pageWith(small, "proof-no", document), { viewport, reducedMotion: "reduce" });
    for (const id of ["#verdict-cause", "#verdict-remedy"]) {
      await page.evaluate(() => scrollTo({ top: 0, behavior: "instant" }));
      await page.locator(id).click();
      const row = page.locator("tr:target");
      assert.ok((await row.locator("th").textContent()).startsWith(name), `${id} leads to its row`);
      await page.waitForFunction(() => {
        const { top, bottom } = document.querySelector("tr:target th").getBoundingClientRect();
        return top >= document.querySelector(".bar-top").offsetHeight && bottom <= innerHeight;
      });
    }
    await context.close();
  }
  const { page, context } = await open(browser, small, { viewport: SIZES[0] });
  assert.equal(await page.getAttribute("#verdict-remedy", "href"), "#machine");
  assert.equal(await page.textContent("#machine"), "Machine");
  await context.close();
});

test("without scripts no help sends to the page that is open", { skip }, async () => {
  const file = simulated("servers", "viewer/test/systems/servers.toml", "--for", "400ms");
  assert.match(documentOf(file).closing.help, /find the cause in .*report\.html/);
  const { page, context } = await open(browser, file, { javaScriptEnabled: false });
  const said = await page.textContent("main");
  assert.ok(said.includes("look at the first missed job, with scripts switched on"), said.slice(0, 400));
  assert.ok(!said.includes("find the cause"));
  await context.close();
});

test("without scripts there are the closing line and a verdict a task", { skip }, async () => {
  const document = documentOf(small);
  const { page, context } = await open(browser, small, { javaScriptEnabled: false });
  const said = await page.textContent("main");
  assert.match(said, /Every deadline is proved to hold/);
  assert.ok(said.includes(document.closing.help) && said.includes("deadline missed: attitude control 1"));
  const rows = await page.locator("main tr").evaluateAll((all) => all.map((row) => [...row.children].map((cell) => cell.textContent)));
  assert.deepEqual(rows[0], ["task", "proof", "bound", "deadline", "simulated", "measured"]);
  assert.equal(rows.length, document.tasks.length + 1);
  document.tasks.forEach((task, i) => {
    const of = (run) => `${run.tasks[i].jobs} jobs, ${run.tasks[i].missed === 0 ? "none" : run.tasks[i].missed} missed`;
    assert.deepEqual([rows[i + 1][0], rows[i + 1][1], ...rows[i + 1].slice(4)], [task.name, task.verdict, ...document.runs.map(of)]);
  });
  await context.close();
});

test("a cause is cut only behind what the badge has said", async () => {
  const { causeInWords } = await load("verdict");
  const of = (text, missed = [{ name: "a", count: 1 }]) => causeInWords({ text, missed });
  assert.equal(of("1 deadline missed (a 1), by the machine: b took CPU 1"), "by the machine: b took CPU 1");
  assert.equal(of("1 deadline missed (a 1)"), "");
  assert.equal(of("1 deadline missed (a 1); cause not known"), "cause not known");
  assert.equal(of("1 deadline missed (a 1) in the simulation"), "in the simulation");
  assert.equal(of("1 deadline missed (a 1) in the simulation; soft, missed: b 2"), "in the simulation; soft, missed: b 2");
  assert.equal(of("2 deadlines missed (a (b) 2), by the machine: c"), "by the machine: c");
  assert.equal(of("1 deadline missed (a 1), by the machine: b", []), "1 deadline missed (a 1), by the machine: b");
  const two = [{ name: "a", count: 2 }, { name: "b", count: 1 }];
  assert.equal(of("b slept; it missed 1 deadline; missed: a 2", two), "b slept; it missed 1 deadline");
  assert.equal(of("c slept; missed: a 2, b 1", two), "c slept");
  assert.equal(of("c slept; soft, missed: b 1", two), "c slept; soft, missed: b 1");
  assert.equal(of("c slept; missed: a 3", two), "c slept; missed: a 3", "the badge says another number");
});
