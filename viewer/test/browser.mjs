/** Opens report pages in headless Chromium, where there is one. */
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", "/snap/bin/chromium"];

/** The browser's program, or null. */
export const CHROMIUM = [process.env["CHROMIUM"], ...PLACES].find((path) => path && existsSync(path)) ?? null;

const ARGUMENTS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export function launch() {
  return chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS });
}

/**
 * Opens a page and gathers everything that must not happen: console messages of weight, script errors, requests
 * for anything but the page itself.
 */
export async function open(browser, file, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const troubles = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) troubles.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => troubles.push(`script: ${error.message}`));
  page.on("request", (request) => {
    const url = request.url();
    if (url !== `file://${file}` && !url.startsWith("data:") && !url.startsWith("blob:")) troubles.push(`request: ${url}`);
  });
  await page.goto(`file://${file}`);
  return { page, troubles, context };
}

/** Waits until every lane is decoded. */
export async function decoded(page) {
  await page.locator("#timeline").scrollIntoViewIfNeeded();
  await page.waitForSelector("#timeline[data-ready]", { timeout: 120_000 });
}
