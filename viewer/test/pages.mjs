/** Pages to open, and what tests do with them. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { CHROMIUM, decoded, open } from "./browser.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const folder = `${root}target/report-pages`;
export const skip = CHROMIUM ? false : "chromium not found";

function cargo(words) {
  mkdirSync(folder, { recursive: true });
  execFileSync("cargo", ["run", "-q", ...words], { cwd: root, stdio: ["ignore", "ignore", "pipe"] });
}

/** The synthetic page with so many events. */
export function sample(name, events) {
  const file = `${folder}/${name}.html`;
  cargo(["-p", "horolog-report", "--example", "sample-report", "--", file, String(events)]);
  return file;
}

/** The page of `horolog loop` for a system that is simulated alone. The loop may say no. */
export function simulated(name, system, ...more) {
  const out = `${folder}/${name}`;
  // A seed of its own would leave an event at the end unserved at times.
  const words = ["loop", system, "--machine", "none", "--seed", "2", "--out", out, "--quiet", ...more];
  try {
    cargo(["-p", "horolog", "--", ...words]);
  } catch (error) {
    if (error.status !== 1 && error.status !== 4) throw new Error(`${words.join(" ")}: ${error.stderr}`);
  }
  return `${out}/report.html`;
}

const OPEN = '<script type="application/json" id="horolog-data">';

/** The document of a page. */
export function documentOf(file) {
  return JSON.parse(readFileSync(file, "utf8").split(OPEN)[1].split("</script")[0]);
}

/** A page with another document, escaped as the crate escapes it. */
export function pageWith(small, name, document) {
  const [head, rest] = readFileSync(small, "utf8").split(OPEN);
  const json = JSON.stringify(document).replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const file = `${folder}/${name}.html`;
  writeFileSync(file, head + OPEN + json + rest.slice(rest.indexOf("</script")));
  return file;
}

/** Opens a page, decodes its timeline, runs the body, and wants no trouble in the end. */
export async function using(browser, file, options, body) {
  const { page, troubles, context } = await open(browser, file, options);
  await decoded(page);
  await page.evaluate(() => document.querySelector("#timeline").scrollIntoView({ behavior: "instant" }));
  // A wheel turn right after the page scrolled belongs to the page.
  await page.waitForTimeout(400);
  await body(page);
  assert.deepEqual(troubles, []);
  await context.close();
}

export const state = (page) =>
  page.evaluate(
    () =>
      new Promise((done) =>
        requestAnimationFrame(() =>
          requestAnimationFrame(() => {
            const { from, to, primitives, redraws } = document.querySelector(".plot").dataset;
            done({ from: Number(from), to: Number(to), primitives: Number(primitives), redraws: Number(redraws) });
          }),
        ),
      ),
  );

