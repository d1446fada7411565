/** The report page in a real browser: the timeline, tables, colours, paper. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { launch, open } from "./browser.mjs";
import { documentOf, folder, pageWith as withDocument, sample, skip, state, using as usingIn } from "./pages.mjs";

if (skip) console.log("SKIPPED: chromium not found: the report page was not opened in a browser");

let browser;
let small;
let big;

before(async () => {
  if (skip) return;
  [small, big] = [sample("small", 12_000), sample("big", 1_000_000)];
  browser = await launch();
});

after(() => browser?.close());

const using = (file, options, body) => usingIn(browser, file, options, body);
const pageWith = (name, document) => withDocument(small, name, document);

test("opens without a network, says the verdict first", { skip }, async () => {
  const document = documentOf(small);
  await using(small, {}, async (page) => {
    assert.equal(await page.title(), "quadcopter with a camera · horolog report");
    assert.match(document.plain_words, /^Every deadline is proved to hold, /);
    assert.deepEqual(await page.locator("#verdict-chips .chip").allTextContents(), ["Proved", "Deadlines missed"]);
    assert.equal(await page.locator("main > section").first().getAttribute("id"), "verdict");
    const order = await page.locator("h2").allTextContents();
    assert.deepEqual(order, ["Tasks", "Timeline", "Response times", "Findings", "How to repeat it"]);
    await page.evaluate(() => scrollTo({ top: 0, behavior: "instant" }));
    await page.screenshot({ path: `${folder}/light.png`, fullPage: true });
  });
});

test("the table holds the document's numbers", { skip }, async () => {
  const document = documentOf(small);
  await using(small, {}, async (page) => {
    const rows = page.locator("table.tasks tbody tr");
    assert.equal(await rows.count(), document.tasks.length);
    assert.equal(await page.locator("table.tasks thead th:not([scope=col])").count(), 0);
    for (const [i, task] of document.tasks.entries()) {
      const cells = await rows.nth(i).locator("td.number:not(.free)").evaluateAll((all) => all.map((cell) => parseFloat(cell.textContent.replace(/^[^0-9]*/, ""))));
      const measured = document.runs[1].tasks[i];
      const wanted = [task.bound_ns, document.runs[0].tasks[i].response_ns_max, measured.response_ns_p99_9, measured.response_ns_max, task.deadline_ns];
      wanted.forEach((ns, column) => assert.ok(Math.abs(cells[column] - ns / 1e6) < 0.0051, `${task.name}: ${cells[column]} for ${ns} ns`));
      const late = (await rows.nth(i).locator("td.late button").count()) === 1;
      assert.equal(late, measured.response_ns_max > task.deadline_ns, `${task.name} is marked as late`);
    }
  });
});

test("zooms by wheel around the pointer, moves by drag", { skip }, async () => {
  await using(small, {}, async (page) => {
    const whole = await state(page);
    const box = await page.locator(".plot").boundingBox();
    const x = box.x + box.width * 0.25;
    await page.mouse.move(x, box.y + 150);
    await page.mouse.wheel(0, -500);
    const near = await state(page);
    assert.ok(near.to - near.from < (whole.to - whole.from) * 0.6, "the wheel zooms in");
    const at = (s) => s.from + 0.25 * (s.to - s.from);
    assert.ok(Math.abs(at(near) - at(whole)) < (whole.to - whole.from) * 0.003, "the place under the pointer stays");
    await page.mouse.down();
    await page.mouse.move(x - 200, box.y + 150, { steps: 5 });
    await page.mouse.up();
    const moved = await state(page);
    const expected = near.from + (200 / box.width) * (near.to - near.from);
    assert.ok(Math.abs(moved.from - expected) < (near.to - near.from) * 0.01, "a drag moves the window with the pointer");
    await page.keyboard.down("Shift");
    await page.mouse.move(box.x + 300, box.y + 150);
    await page.mouse.down();
    await page.mouse.move(box.x + 400, box.y + 150, { steps: 5 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    const marked = await state(page);
    assert.ok(Math.abs((marked.to - marked.from) / (moved.to - moved.from) - 100 / box.width) < 0.02, "Shift and drag zoom to what is marked");
    const map = await page.locator(".minimap").boundingBox();
    await page.mouse.click(map.x + map.width * 0.9, map.y + 10);
    assert.ok((await state(page)).from > whole.to * 0.8, "a click on the whole run goes there");
  });
});

test("everything on the timeline works by keyboard", { skip }, async () => {
  await using(small, {}, async (page) => {
    await page.locator(".plot").focus();
    const whole = await state(page);
    await page.keyboard.press("+");
    const near = await state(page);
    assert.ok(Math.abs((near.to - near.from) * 2 - (whole.to - whole.from)) < 2);
    await page.keyboard.press("ArrowRight");
    assert.ok((await state(page)).from > near.from);
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("-");
    await page.keyboard.press("+");
    await page.keyboard.press("Home");
    const again = await state(page);
    assert.deepEqual([again.from, again.to], [whole.from, whole.to]);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    const readout = page.locator(".readout");
    assert.match(await readout.textContent(), /^attitude control, measured, 688 jobs/);
    await page.keyboard.press("w");
    assert.match(await readout.textContent(), /job \d+ · arrived at .* deadline missed by/);
    const worst = await state(page);
    assert.ok(worst.to - worst.from < (whole.to - whole.from) / 50);
    await page.keyboard.press(".");
    await page.keyboard.press("m");
    assert.match(await readout.textContent(), /deadline missed by/);
    await page.keyboard.press("f");
    assert.match(await readout.textContent(), /^deadline missed|^foreign thread/);
    await page.keyboard.press("Tab");
    const focused = await page.evaluate(() => document.activeElement.tagName);
    assert.notEqual(focused, "BODY", "the timeline does not trap the focus");
    for (const name of await page.locator(".lane").evaluateAll((all) => all.map((lane) => lane.getAttribute("aria-label")))) {
      assert.match(name, /, (simulated|measured), /);
    }
  });
});

test("findings and table cells lead to their places", { skip }, async () => {
  const document = documentOf(small);
  await using(small, {}, async (page) => {
    const index = document.findings.findIndex((f) => f.kind === "foreign thread");
    await page.locator("#findings details", { hasText: "kworker" }).locator("summary").click();
    await page.locator("#findings button.link").first().click();
    const seen = await state(page);
    const at = document.findings[index].time_ns;
    assert.ok(seen.from < at && at < seen.to && seen.to - seen.from < 1e9, `${at} in ${JSON.stringify(seen)}`);
    await page.keyboard.press("Home");
    await page.locator("#tasks button.link").first().click();
    assert.match(await page.locator(".readout").textContent(), /attitude control, measured, job \d+/);
    await page.locator("#timeline").screenshot({ path: `${folder}/worst-job.png` });
  });
});

test("runs can be hidden, charts switched, colours flipped", { skip }, async () => {
  await using(small, { colorScheme: "light" }, async (page) => {
    const lanes = await page.locator(".lane").count();
    await page.locator(".tools input").first().uncheck();
    assert.ok((await page.locator(".lane").count()) < lanes);
    assert.equal(await page.locator(".lane-run.simulated").count(), 0);
    assert.ok((await page.locator("#distributions figure").count()) === 4);
    const before = await page.locator("#distributions svg path").first().getAttribute("d");
    await page.getByLabel("Histogram").check();
    assert.notEqual(await page.locator("#distributions svg path").first().getAttribute("d"), before);
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    const drawn = (await state(page)).redraws;
    await page.locator("button.theme").click();
    assert.notEqual(await ground(), light);
    assert.ok((await state(page)).redraws > drawn, "the canvas follows the colours");
    assert.equal(await page.locator("button.theme").getAttribute("aria-pressed"), "true");
  });
});

/** Relative luminance contrast as the accessibility guidelines define it. */
function contrast(a, b) {
  const luminance = (hex) => {
    const part = (i) => parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16) / 255;
    const linear = [0, 1, 2].map(part).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
}

test("dark and light are readable", { skip }, async () => {
  for (const colorScheme of ["light", "dark"]) {
    await using(small, { colorScheme }, async (page) => {
      const names = ["surface", "ground", "ink", "muted", "simulated", "measured", "foreign", "bad", "good", "warn", "info", "bad-ground", "good-ground", "warn-ground", "info-ground", "faint"];
      const colours = await page.evaluate((all) => {
        const style = getComputedStyle(document.documentElement);
        return Object.fromEntries(all.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
      }, names);
      const pairs = ["ink", "muted", "simulated", "measured", "foreign", "bad", "warn", "good"].flatMap((ink) => [[ink, "surface"], [ink, "ground"]]);
      pairs.push(["ink", "faint"], ["muted", "faint"], ...["bad", "good", "warn", "info"].map((name) => [name, `${name}-ground`]));
      for (const [ink, paper] of pairs) {
        const ratio = contrast(colours[ink], colours[paper]);
        assert.ok(ratio >= 4.5, `${colorScheme}: ${ink} on ${paper} has ${ratio.toFixed(2)}`);
      }
      await page.evaluate(() => scrollTo({ top: 0, behavior: "instant" }));
      await page.screenshot({ path: `${folder}/${colorScheme}.png`, fullPage: true });
    });
  }
});

test("narrow screens and paper", { skip }, async () => {
  await using(small, { viewport: { width: 390, height: 844 } }, async (page) => {
    const [content, screen] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(content <= screen, `the page is ${content} wide on a screen of ${screen}`);
    await page.evaluate(() => scrollTo({ top: 0, behavior: "instant" }));
    await page.screenshot({ path: `${folder}/narrow.png`, fullPage: true });
  });
  await using(small, { colorScheme: "dark" }, async (page) => {
    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    assert.equal(await page.locator("nav").isVisible(), false);
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
    await page.pdf({ path: `${folder}/print.pdf`, format: "A4" });
  });
});

test("hostile names stay text", { skip }, async () => {
  const evil = '"><img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>';
  const document = documentOf(small);
  document.system = evil;
  document.plain_words = evil;
  Object.assign(document.closing, { text: evil, help: evil, missed: [{ name: evil, count: 2 }] });
  document.groups.forEach((group) => Object.assign(group, { kind: evil, subject: evil }));
  document.system_file = evil;
  document.provenance.command = evil;
  document.notes = [evil];
  document.tasks.forEach((task) => Object.assign(task, { name: evil, explain: evil, test: evil, preemption: evil }));
  document.findings.forEach((finding) => Object.assign(finding, { kind: evil, text: evil }));
  document.runs.forEach((run) => run.timeline?.labels.fill(evil));
  document.runs.forEach((run) => run.timeline?.lanes.forEach((lane) => (lane.name = evil)));
  await using(pageWith("hostile", document), {}, async (page) => {
    const box = await page.locator(".plot").boundingBox();
    await page.mouse.move(box.x + 300, box.y + 150);
    await page.mouse.click(box.x + 300, box.y + 150);
    assert.equal(await page.locator("img").count(), 0);
    assert.equal(await page.evaluate(() => window.hacked), undefined);
    assert.equal(await page.textContent("h1"), evil);
  });
});

test("what is left out or missing is said", { skip }, async () => {
  const document = documentOf(small);
  document.runs[1].timeline.events_dropped = 123_456;
  document.runs[1].events_lost = 7;
  document.findings_omitted = 41;
  document.runs[1].tasks[0].response_ns_max += 5_000_000;
  document.verdict.best_effort = true;
  await using(pageWith("truncated", document), {}, async (page) => {
    const said = (await page.locator(".qualifiers").textContent()).replaceAll("\u202f", "");
    assert.match(said, /first [\d,]+ events kept, 123,456 dropped/);
    assert.match(said, /lost 7 events/);
    assert.match(await page.textContent("#verdict-chips"), /Best effort/);
    assert.match(await page.textContent("#findings"), /41 further findings/);
    await page.locator("#tasks button.link").first().click();
    await page.waitForFunction(() => /longest response, 9\.6\d+ ms, lies behind/.test(document.querySelector(".readout").textContent));
  });
  const empty = { ...documentOf(small), closing: null, runs: [], tasks: [], findings: [], groups: [], facts: [], notes: [] };
  const { page, troubles, context } = await open(browser, pageWith("empty", empty));
  assert.match(await page.textContent("#timeline"), /No timeline was recorded/);
  assert.deepEqual(troubles, []);
  await context.close();
});

test("rows out of sight cost nothing, and paper sees them all", { skip }, async () => {
  const document = documentOf(small);
  const [tasks, own] = [document.tasks.slice(), document.tasks.length];
  for (let copy = 1; copy < 16; copy++) {
    document.tasks.push(...tasks.map((task) => ({ ...task, name: `${task.name} ${copy}` })));
    for (const run of document.runs) {
      run.tasks.push(...run.tasks.slice(0, own));
      const lanes = run.timeline.lanes.filter((lane) => lane.kind === "task" && lane.index < own);
      run.timeline.lanes.push(...lanes.map((lane) => ({ ...lane, index: copy * own + lane.index })));
    }
  }
  await using(pageWith("many", document), {}, async (page) => {
    const rows = await page.locator(".lane").count();
    const width = await page.evaluate(() => document.querySelector(".plot").clientWidth);
    const { primitives } = await state(page);
    assert.ok(primitives < 70 * width && rows > 120, `${primitives} shapes for ${rows} rows`);
    await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
    assert.ok((await page.evaluate(() => Number(document.querySelector(".plot").dataset.primitives))) > primitives * 1.8);
  });
});

test("a million events: a redraw's shapes do not grow with the recording", { skip }, async () => {
  let budget = 0;
  await using(small, {}, async (page) => {
    const lanes = await page.locator(".lane").count();
    const width = await page.evaluate(() => document.querySelector(".plot").clientWidth);
    // A column of shares or a third of one interval a pixel, arrows and marks in their own limits, text.
    budget = lanes * width * 1.5;
  });
  const events = documentOf(big).runs.reduce((sum, run) => sum + run.timeline.events_kept, 0);
  assert.ok(events >= 1_000_000, `only ${events} events`);
  await using(big, {}, async (page) => {
    await page.evaluate(() => {
      window.longTasks = [];
      new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((e) => e.duration))).observe({ type: "longtask" });
    });
    const box = await page.locator(".plot").boundingBox();
    await page.mouse.move(box.x + 500, box.y + 120);
    const first = await state(page);
    let last = first;
    for (let step = 0; step < 60 && last.to - last.from > 1e6; step++) {
      await page.mouse.wheel(0, -500);
      const now = await state(page);
      assert.ok(now.primitives > 0 && now.primitives <= budget, `${now.primitives} shapes, at most ${budget}`);
      assert.ok(now.redraws > last.redraws, "every turn of the wheel is drawn");
      last = now;
    }
    assert.ok(last.to - last.from <= 1e6, "zoomed from minutes to a millisecond");
    await page.keyboard.press("Home");
    await page.locator(".plot").focus();
    await page.keyboard.press("Home");
    await page.keyboard.press("w");
    assert.match(await page.locator(".readout").textContent(), /job \d+/);
    const long = await page.evaluate(() => window.longTasks);
    console.log(`${last.redraws - first.redraws} redraws over ${events} events, ${long.length} tasks above 50 ms, the longest ${Math.max(0, ...long)} ms`);
    await page.locator("#timeline").screenshot({ path: `${folder}/million.png` });
  });
});
