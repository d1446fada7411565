import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { ASSET, buildPage } from "../build.mjs";

test("the checked-in page is what the sources build", async () => {
  const built = await buildPage();
  assert.ok(built.length > 20_000, "the build is empty");
  const same = (await readFile(ASSET, "utf8")) === built;
  assert.ok(same, "engines/report/assets/report.html is stale: run `npm run build` in viewer/ and commit it");
});

test("the lock file names no host of its own", async () => {
  const lock = await readFile(new URL("../package-lock.json", import.meta.url), "utf8");
  const hosts = [...lock.matchAll(/"resolved": *"https?:\/\/([^/"]+)/g)].map((match) => match[1]);
  assert.deepEqual(hosts.filter((host) => host !== "registry.npmjs.org"), []);
});
