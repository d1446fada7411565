/**
 * Builds the report page: bundles the script and the style, puts both into the page with their hashes in its
 * content security policy. `node build.mjs` writes the checked-in page; `buildPage()` returns it, for the test
 * that proves it fresh.
 */
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

/** Where the built page is checked in. */
export const ASSET = here("../engines/report/assets/report.html");

async function bundle(entry, loader) {
  const result = await esbuild.build({
    entryPoints: [here(entry)],
    bundle: true,
    minify: true,
    write: false,
    format: loader === "css" ? undefined : "iife",
    target: ["es2022", "chrome103", "firefox113", "safari16.4"],
    charset: "utf8",
    legalComments: "none",
    logLevel: "error",
  });
  return result.outputFiles[0].text.trimEnd();
}

function hash(text) {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

/** The page as one text. */
export async function buildPage() {
  const [template, script, style] = await Promise.all([
    readFile(here("src/page.html"), "utf8"),
    bundle("src/main.ts", "js"),
    bundle("src/style.css", "css"),
  ]);
  if (/<\/(script|style)/i.test(script + style)) throw new Error("the bundle would end its own element");
  const parts = { script, style, "script-hash": hash(script), "style-hash": hash(style) };
  return template.replace(/\{\{([a-z-]+)\}\}/g, (_, name) => parts[name]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const page = await buildPage();
  await writeFile(ASSET, page);
  console.log(`${ASSET}: ${page.length} bytes`);
}
