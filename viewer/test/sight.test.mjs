/** What the timeline's pixels show: at first sight, where it is dense, and with a million records. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { decoded, launch, open } from "./browser.mjs";
import { packed, packedIntervals, packedJobs } from "./pack.mjs";
import { documentOf, folder, pageWith, sample, skip } from "./pages.mjs";

let browser;
let small;
let big;

before(async () => {
  if (skip) return;
  [small, big] = [sample("sight", 12_000), sample("big", 1_000_000)];
  browser = await launch();
});

after(() => browser?.close());

const frames = (page) => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))));

/**
 * The ink of each lane that can be seen whole: the share of its canvas that is not empty, each pixel as strong as its opacity. The lines
 * of the axis and of the lanes do not count.
 */
const ink = (page, counts = null) =>
  page.evaluate((wanted) => {
    const canvas = document.querySelector(".plot canvas");
    const box = canvas.getBoundingClientRect();
    const scale = canvas.width / box.width;
    // A copy: the page's own canvas is not made for being read.
    const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
    const context = copy.getContext("2d", { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
    const rgb = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim().match(/\w\w/g).map((c) => parseInt(c, 16));
    const [line, only] = [rgb("line"), wanted && rgb(wanted)];
    const is = (at, colour) => colour.every((part, i) => Math.abs(pixels.data[at + i] - part) <= 1);
    return [...document.querySelectorAll(".lane")].flatMap((lane) => {
      const place = lane.getBoundingClientRect();
      const isSeen = place.top >= 0 && place.bottom <= innerHeight;
      if (!isSeen) return [];
      const [top, bottom] = [place.top + 5, place.bottom - 5].map((y) => Math.round((y - box.top) * scale));
      let sum = 0;
      for (let y = Math.max(0, top); y < Math.min(bottom, canvas.height); y++) {
        for (let x = 0; x < canvas.width; x++) {
          const at = 4 * (y * canvas.width + x);
          const counted = only ? is(at, only) || pixels.data[at + 3] < 255 : !is(at, line);
          if (counted) sum += pixels.data[at + 3] / 255;
        }
      }
      return [{ name: lane.getAttribute("aria-label").split(",").slice(0, 2).join(","), ink: sum / (canvas.width * (bottom - top)) }];
    });
  }, counts);

const SIZES = [[1280, 720], [1920, 1080], [2560, 1440], [1024, 600], [390, 844]];

test("the timeline is drawn at first sight, before anybody touches it", { skip }, async () => {
  for (const [width, height] of SIZES) {
    const { page, troubles, context } = await open(browser, small, { viewport: { width, height }, reducedMotion: "reduce" });
    // Decoded while it lies below the screen, as for a reader who begins at the top.
    await page.evaluate(() => {
      const top = document.querySelector("#timeline").getBoundingClientRect().top + scrollY;
      scrollTo({ top: Math.max(0, top - innerHeight - 550), behavior: "instant" });
    });
    await page.waitForSelector("#timeline[data-ready]");
    await frames(page);
    await page.evaluate(() => document.querySelector(".timeline").scrollIntoView({ behavior: "instant", block: "end" }));
    await frames(page);
    const seen = await ink(page);
    assert.ok(seen.length >= 8, `${seen.length} lanes on a screen of ${width}x${height}`);
    for (const lane of seen) assert.ok(lane.ink > 0.001, `${lane.name} is blank at first sight in ${width}x${height}`);
    // What a touch brings out is nothing new.
    await page.locator(".plot").focus();
    for (const key of ["+", "-", "Home"]) await page.keyboard.press(key);
    await page.evaluate(() => scrollBy({ top: -30, behavior: "instant" }));
    await page.evaluate(() => scrollBy({ top: 30, behavior: "instant" }));
    await frames(page);
    const touched = await ink(page);
    for (const lane of seen) {
      const after = touched.find((one) => one.name === lane.name);
      assert.ok(after && Math.abs(after.ink - lane.ink) < 1e-6, `${lane.name} in ${width}x${height}: ${lane.ink} at first, ${after?.ink} after a touch`);
    }
    assert.deepEqual(troubles, []);
    await context.close();
  }
});

test("a page that is not scrolled has its timeline, also in print", { skip }, async () => {
  for (const media of ["screen", "print"]) {
    const { page, troubles, context } = await open(browser, small, { viewport: { width: 1280, height: 400 } });
    await page.waitForSelector("#timeline[data-ready]", { state: "attached", timeout: 30_000 });
    assert.equal(await page.evaluate(() => scrollY), 0, "nothing moved the page");
    await page.emulateMedia({ media });
    if (media === "print") await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    // The same page in a window that shows all of it.
    await page.setViewportSize({ width: 1280, height: await page.evaluate(() => document.documentElement.scrollHeight) });
    await frames(page);
    const seen = await ink(page);
    assert.ok(seen.length >= 8, `${seen.length} lanes`);
    for (const lane of seen) assert.ok(lane.ink > 0.001, `${lane.name} is blank in ${media}`);
    assert.deepEqual(troubles, []);
    await context.close();
  }
});

test("a timeline longer than the screen shows each of its lanes where it comes into sight", { skip }, async () => {
  const document = documentOf(small);
  const own = document.tasks.length;
  const tasks = document.tasks.slice();
  for (let copy = 1; copy < 40; copy++) {
    document.tasks.push(...tasks.map((task) => ({ ...task, name: `${task.name} ${copy}` })));
    for (const run of document.runs) {
      run.tasks.push(...run.tasks.slice(0, own));
      const lanes = run.timeline.lanes.filter((lane) => lane.kind === "task" && lane.index < own);
      run.timeline.lanes.push(...lanes.map((lane) => ({ ...lane, index: copy * own + lane.index, name: `${lane.name} ${copy}` })));
    }
  }
  const { page, troubles, context } = await open(browser, pageWith(small, "long", document), { viewport: { width: 1280, height: 720 } });
  await decoded(page);
  const height = await page.evaluate(() => document.querySelector(".plot").clientHeight);
  assert.ok(height > 10 * 720);
  const seen = new Map();
  for (let at = 0; at < height; at += 650) {
    await page.evaluate((y) => scrollTo({ top: document.querySelector(".plot").getBoundingClientRect().top + scrollY + y, behavior: "instant" }), at);
    await frames(page);
    for (const lane of await ink(page)) seen.set(lane.name, lane.ink);
  }
  assert.ok(seen.size >= 2 * document.tasks.length, `${seen.size} lanes were seen`);
  for (const [name, share] of seen) assert.ok(share > 0.001, `${name} is blank`);
  const [tall, wide] = await page.evaluate(() => [document.querySelector(".plot canvas").height, document.querySelector(".plot canvas").width]);
  assert.ok(tall * wide < 8e6, "the canvas does not grow with the number of lanes");
  assert.deepEqual(troubles, []);
  await context.close();
});

/** The small page with one task whose simulated lane is given. */
function withLane(name, lane, deadline) {
  const document = documentOf(small);
  document.tasks = [{ ...document.tasks[0], deadline_ns: deadline }];
  document.findings = [];
  document.groups = [];
  const [run] = document.runs;
  run.tasks = [run.tasks[0]];
  run.timeline = { ...run.timeline, from_ns: 0, to_ns: 1e9, lanes: [{ kind: "task", index: 0, name: "one", jobs: [0, packed([], [], [], [], [])], marks: [0, packed([], [], [], [])], ...lane }] };
  document.runs = [run];
  return pageWith(small, name, document);
}

test("the ink of a lane is the share of its time that it is busy, however dense", { skip }, async () => {
  // So many intervals of one length: drawn one by one below a third of the width, as shares above.
  for (const [count, share] of [[1, 0.5], [40, 0.5], [300, 0.02], [300, 0.2], [500, 0.1], [2_000, 0.3], [100_000, 0.6], [100_000, 0.04]]) {
    const [period, busy] = [Math.floor(1e9 / count), Math.round((1e9 / count) * share)];
    const rows = Array.from({ length: count }, (_, i) => [i * period, busy, 1, i]);
    const file = withLane(`ink-${count}-${share}`, { intervals: packedIntervals(rows) }, null);
    const { page, context } = await open(browser, file, { viewport: { width: 1280, height: 720 }, deviceScaleFactor: 2, colorScheme: "light" });
    await decoded(page);
    await page.evaluate(() => document.querySelector(".timeline").scrollIntoView({ behavior: "instant", block: "center" }));
    await frames(page);
    const [lane] = await ink(page, "simulated");
    assert.ok(Math.abs(lane.ink - share) < 0.02, `${count} intervals that take ${share} have ${lane.ink.toFixed(3)} of the ink`);
    await context.close();
  }
});

test("many misses in a column become a badge with their number", { skip }, async () => {
  const deadline = 1_000_000;
  // Thirty misses within four milliseconds, one alone, and 1,700 at the end.
  const arrivals = [...Array(30).keys()].map((i) => 100e6 + i * 130_000).concat([500e6], [...Array(1700).keys()].map((i) => 900e6 + i * 5_000));
  const jobs = packedJobs(arrivals.map((arrival, i) => [i, arrival, 0, deadline + 1, 1]));
  const file = withLane("misses", { jobs, intervals: packedIntervals([[0, 1e9, 2, 0]]) }, deadline);
  const { page, context } = await open(browser, file, { viewport: { width: 1280, height: 720 } });
  await decoded(page);
  await frames(page);
  const counted = () => page.evaluate(() => document.querySelector(".plot").dataset.counted);
  assert.equal(await counted(), "30 1700");
  const [red] = await ink(page, "bad");
  assert.ok(red.ink > 0.02, `the badges have ${red.ink} of the lane`);
  await page.locator("#timeline").screenshot({ path: `${folder}/badges.png` });
  // Near enough, each miss has its own cross.
  await page.locator(".plot").focus();
  await page.keyboard.press("m");
  for (let i = 0; i < 6; i++) await page.keyboard.press("+");
  await frames(page);
  assert.equal(await counted(), "");
  await context.close();
});

test("a million records are drawn soon after the page is opened", { skip }, async () => {
  const events = documentOf(big).runs.reduce((sum, run) => sum + run.timeline.events_kept, 0);
  assert.ok(events >= 1_000_000);
  for (const [width, height] of SIZES.slice(0, 2)) {
    const { page, context } = await open(browser, big, { viewport: { width, height } });
    await page.waitForSelector("html[data-built]");
    const built = await page.evaluate(() => Math.round(performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd));
    await decoded(page);
    const ready = await page.evaluate(() => Number(document.querySelector("#timeline").dataset.ready));
    assert.ok(ready > 0);
    const lanes = await ink(page);
    assert.ok(lanes.every((lane) => lane.ink > 0.001), JSON.stringify(lanes));
    console.log(`${events} records at ${width}x${height}: verdict and tables after ${built} ms, timeline drawn after ${ready} ms`);
    await context.close();
  }
});
