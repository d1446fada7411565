/** Making elements. Text always goes through `textContent`, so no name in a report can become markup. */

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: `on…` attributes are listeners, `false`, `null` and `undefined` leave an attribute out. */
export function h<K extends keyof HTMLElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(name);
  fill(element, attributes, children);
  return element;
}

/** An SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, name);
  fill(element, attributes, children);
  return element;
}

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(key.slice(2), value as EventListener);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children) if (child) element.append(child);
}

/** Places an element's style properties without a style attribute, which the page's policy refuses. */
export function place(element: HTMLElement | SVGElement, properties: Record<string, string>): void {
  for (const [name, value] of Object.entries(properties)) element.style.setProperty(name, value);
}

let serial = 0;

/** A fresh id, for labels that point at elements. */
export function freshId(stem: string): string {
  serial += 1;
  return `${stem}-${serial}`;
}

/** A sign with a shape of its own, so that no meaning hangs on colour alone. */
export function icon(name: "good" | "bad" | "warn" | "info"): SVGElement {
  const paths = {
    good: "M3.5 8.5l3 3 6-7",
    bad: "M4 4l8 8M12 4l-8 8",
    warn: "M8 3.5v6M8 12.2v.3",
    info: "M8 7.2v5M8 4v.3",
  };
  return s(
    "svg",
    { viewBox: "0 0 16 16", class: `icon icon-${name}`, "aria-hidden": "true", focusable: "false" },
    s("path", { d: paths[name] }),
  );
}

/** A word in a coloured field, with its sign. */
export function chip(kind: "good" | "bad" | "warn" | "info", text: string): HTMLElement {
  return h("span", { class: `chip chip-${kind}` }, icon(kind), text);
}
