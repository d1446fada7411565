/** Wheel, drag, pinch and keys on the timeline. */
import type { Viewport } from "./viewport";

export interface Actions {
  timeAt(clientX: number): number;
  hover(event: PointerEvent | null): void;
  pick(event: PointerEvent): void;
  brush(from: number | null, to: number): void;
}

/** A wheel turn that began elsewhere keeps scrolling the page. */
const PAGE_SCROLL_MS = 250;
const ZOOM_PER_PIXEL = 1.0016;

export function addGestures(element: HTMLElement, view: Viewport, actions: Actions): void {
  wheel(element, view, actions);
  drag(element, view, actions);
  element.addEventListener("dblclick", (event) => view.zoom(0.25, actions.timeAt(event.clientX)));
}

function wheel(element: HTMLElement, view: Viewport, actions: Actions): void {
  let scrolled = -Infinity;
  addEventListener("scroll", () => (scrolled = performance.now()), { passive: true });
  element.addEventListener(
    "wheel",
    (event) => {
      if (performance.now() - scrolled < PAGE_SCROLL_MS) return;
      const unit = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? 300 : 1;
      const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
      const sideways = event.shiftKey || Math.abs(dx) > Math.abs(dy);
      if (!sideways && dy > 0 && view.isWhole) return;
      event.preventDefault();
      if (sideways) view.pan((event.shiftKey && dx === 0 ? dy : dx) / element.clientWidth);
      else view.zoom(ZOOM_PER_PIXEL ** Math.max(-600, Math.min(600, dy)), actions.timeAt(event.clientX));
    },
    { passive: false },
  );
}

function drag(element: HTMLElement, view: Viewport, actions: Actions): void {
  const down = new Map<number, PointerEvent>();
  let start: { x: number; from: number; to: number; shift: boolean; moved: boolean } | null = null;
  let pinch: { distance: number; span: number; middle: number } | null = null;
  element.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    down.set(event.pointerId, event);
    element.setPointerCapture(event.pointerId);
    start = { x: event.clientX, from: view.from, to: view.to, shift: event.shiftKey, moved: false };
    if (down.size === 2) {
      const [a, b] = [...down.values()];
      const middle = actions.timeAt((a.clientX + b.clientX) / 2);
      pinch = { distance: Math.max(20, Math.abs(a.clientX - b.clientX)), span: view.span, middle };
    }
  });
  element.addEventListener("pointermove", (event) => {
    if (!down.has(event.pointerId) || !start) return actions.hover(event);
    down.set(event.pointerId, event);
    if (pinch && down.size === 2) {
      const [a, b] = [...down.values()];
      const span = (pinch.span * pinch.distance) / Math.max(20, Math.abs(a.clientX - b.clientX));
      return view.zoom(span / view.span, pinch.middle);
    }
    const distance = event.clientX - start.x;
    if (Math.abs(distance) > 3) start.moved = true;
    if (!start.moved) return;
    if (start.shift) return actions.brush(actions.timeAt(start.x), actions.timeAt(event.clientX));
    const shift = (distance / element.clientWidth) * (start.to - start.from);
    view.show(start.from - shift, start.to - shift);
  });
  const end = (event: PointerEvent) => {
    down.delete(event.pointerId);
    pinch = null;
    if (start && !start.moved && event.type === "pointerup") actions.pick(event);
    if (start?.moved && start.shift) {
      const times = [actions.timeAt(start.x), actions.timeAt(event.clientX)].sort((a, b) => a - b);
      actions.brush(null, 0);
      if (event.type === "pointerup") view.show(times[0], times[1]);
    }
    if (down.size === 0) start = null;
  };
  element.addEventListener("pointerup", end);
  element.addEventListener("pointercancel", end);
  element.addEventListener("pointerleave", () => actions.hover(null));
}
