/**
 * Makes a picture of a report for the README: `node picture.mjs REPORT.html PICTURE.png [light|dark]`. The timeline is
 * zoomed to the worst job of the first task.
 */
import { resolve } from "node:path";
import { CHROMIUM, decoded, launch, open } from "./test/browser.mjs";

const [report, picture, colorScheme = "light"] = process.argv.slice(2);
if (!report || !picture) throw new Error("usage: node picture.mjs REPORT.html PICTURE.png [light|dark]");
if (!CHROMIUM) throw new Error("chromium not found: install it, or name it in the variable CHROMIUM");
const browser = await launch();
const { page } = await open(browser, resolve(report), { colorScheme, viewport: { width: 1280, height: 720 } });
await decoded(page);
await page.locator(".plot").focus();
for (const key of ["w", "-", "-", "Escape"]) await page.keyboard.press(key);
await page.evaluate(() => {
  document.activeElement?.blur();
  scrollTo({ top: 0, behavior: "instant" });
});
const bottom = await page.evaluate(() => document.querySelector("#timeline .legend").getBoundingClientRect().bottom);
await page.setViewportSize({ width: 1280, height: Math.ceil(bottom) + 24 });
await page.waitForTimeout(300);
await page.screenshot({ path: picture });
await browser.close();
