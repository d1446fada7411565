/** Dark and light: follows the system until the reader chooses; canvases read their colours from the style. */

export interface Palette {
  surface: string;
  ink: string;
  muted: string;
  line: string;
  faint: string;
  simulated: string;
  measured: string;
  bad: string;
  warn: string;
  foreign: string;
  focus: string;
}

const KEY = "horolog-theme";
const listeners: (() => void)[] = [];

/** The colours of the current theme. */
export function palette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    surface: read("surface"),
    ink: read("ink"),
    muted: read("muted"),
    line: read("line"),
    faint: read("faint"),
    simulated: read("simulated"),
    measured: read("measured"),
    bad: read("bad"),
    warn: read("warn"),
    foreign: read("foreign"),
    focus: read("focus"),
  };
}

/** Calls back when colours change. */
export function onTheme(listener: () => void): void {
  listeners.push(listener);
}

export function isDark(): boolean {
  const chosen = document.documentElement.dataset["theme"];
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function choose(theme: "dark" | "light" | null): void {
  if (theme) document.documentElement.dataset["theme"] = theme;
  else delete document.documentElement.dataset["theme"];
  for (const listener of listeners) listener();
}

/** Starts with the stored choice; the button flips it. Printing is always light. */
export function setUpTheme(button: HTMLButtonElement): void {
  const label = () => {
    const dark = isDark();
    button.setAttribute("aria-pressed", String(dark));
    button.setAttribute("title", dark ? "Switch to light" : "Switch to dark");
  };
  onTheme(label);
  const stored = recall();
  choose(stored);
  button.addEventListener("click", () => {
    const next = isDark() ? "light" : "dark";
    remember(next);
    choose(next);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => choose(recall()));
  let before: "dark" | "light" | null = null;
  addEventListener("beforeprint", () => {
    before = (document.documentElement.dataset["theme"] as "dark" | "light" | undefined) ?? null;
    choose("light");
  });
  addEventListener("afterprint", () => choose(before));
}

/** Storage is refused on some file:// pages: the choice then lasts as long as the page. */
function recall(): "dark" | "light" | null {
  try {
    const stored = localStorage.getItem(KEY);
    return stored === "dark" || stored === "light" ? stored : null;
  } catch {
    return null;
  }
}

function remember(theme: string): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    return;
  }
}
