/** The page of a sweep (engines/sweep/src/page.html) in a browser. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { launch, open } from "./browser.mjs";
import { folder, skip } from "./pages.mjs";

const PAGE = fileURLToPath(new URL("../../engines/sweep/src/page.html", import.meta.url));
const TESTS = ["edf-qpa", "<b>rm"];
let browser;

before(async () => {
  if (!skip) browser = await launch();
});
after(() => browser?.close());

/** Two numbers of tasks and three utilisations: of 100 sets `meets` of each test, by the cell's place. */
function sweep() {
  const cells = [5, 10].flatMap((tasks, of) =>
    [0.5, 0.7, 0.9].map((utilisation, at) => ({
      cell: `${of}${at}`, tasks, utilisation, method: "uunifast", seed: 1,
      tests: TESTS.map((name, place) => {
        const meets = place === 0 ? 100 : 80 - 30 * at - 10 * of;
        return {
          test: name, sets: 100, meets, misses: 0, unknown: 100 - meets, ratio: meets / 100,
          utilisation_sum: 100 * utilisation, utilisation_met: meets * utilisation,
        };
      }),
    })),
  );
  return { schema: "horolog.sweep-result/1", name: "<script>alert(1)</script>", version: "0.1.0", sets: 100, is_complete: true, cells };
}

async function using(name, data, body, options = {}) {
  mkdirSync(folder, { recursive: true });
  const file = `${folder}/${name}.html`;
  writeFileSync(file, readFileSync(PAGE, "utf8").replace("__DATA__", () => JSON.stringify(data).replaceAll("<", "\\u003c")));
  const { page, troubles, context } = await open(browser, file, options);
  await body(page);
  assert.deepEqual(troubles, []);
  await context.close();
}

const table = (page) => page.$$eval("#table tr", (rows) => rows.map((row) => [...row.children].map((cell) => cell.textContent)));
const lines = (page) => page.$$eval("#chart polyline", (all) => all.map((one) => one.dataset.line));

test("axis, measure, lines, tests and filter are chosen", { skip }, async () => {
  await using("sweep", sweep(), async (page) => {
    assert.equal(await page.textContent("h1"), "<script>alert(1)</script>");
    // Seeds and numbers of tasks together, over the utilisation.
    assert.deepEqual(await table(page), [
      ["utilisation", ...TESTS], ["0.5", "1.0000", "0.7500"], ["0.7", "1.0000", "0.4500"], ["0.9", "1.0000", "0.1500"],
    ]);
    await page.selectOption("[name='only:tasks']", "10");
    assert.deepEqual((await table(page))[1], ["0.5", "1.0000", "0.7000"]);
    await page.selectOption("[name='only:tasks']", "all");
    await page.selectOption("[name=split]", "test and tasks");
    assert.deepEqual(await lines(page), ["edf-qpa, tasks 5", "<b>rm, tasks 5", "edf-qpa, tasks 10", "<b>rm, tasks 10"]);
    await page.uncheck("[name='test:edf-qpa']");
    assert.deepEqual(await lines(page), ["<b>rm, tasks 5", "<b>rm, tasks 10"]);
    await page.selectOption("[name=split]", "test");
    await page.selectOption("[name=x]", "tasks");
    await page.selectOption("[name=y]", "weighted schedulability");
    // By hand: (80·0.5 + 50·0.7 + 20·0.9) / (100·2.1), and ten sets less at each utilisation.
    assert.deepEqual(await table(page), [["tasks", "<b>rm"], ["5", "0.4429"], ["10", "0.3429"]]);
    await page.selectOption("[name=y]", "share that is unknown");
    assert.deepEqual((await table(page))[1], ["5", "0.5000"]);
  });
});

test("a line lies where its numbers are", { skip }, async () => {
  await using("sweep-line", sweep(), async (page) => {
    const points = await page.$eval("#chart polyline:nth-of-type(2)", (line) => line.getAttribute("points"));
    // 60 to 780 over 0.5 to 0.9, 370 to 20 over 0 to 1.
    assert.equal(points, "60.0,107.5 420.0,212.5 780.0,317.5");
  });
});

test("one cell alone, and blocks that are not there yet", { skip }, async () => {
  const data = sweep();
  data.cells = data.cells.slice(0, 1);
  data.is_complete = false;
  data.cells[0].tests[0] = { ...data.cells[0].tests[0], sets: 0, meets: 0, unknown: 0, ratio: null };
  await using("sweep-one", data, async (page) => {
    assert.match(await page.textContent("#about"), /not every block is there yet/);
    assert.deepEqual((await table(page))[1], ["0.5", "", "0.8000"]);
  }, { colorScheme: "dark" });
});
