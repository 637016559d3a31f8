// Parts of the page in use: a button that is held down or was just clicked, or an open menu. Updates skip them.

const AFTER_CLICK_MS = 600;
const PARTS = ".verb, .dock-item, .title";

/** @type {Element | null} */
let pressed = null;
/** @type {WeakMap<Element, number>} */
const clicked = new WeakMap();

export function trackUse() {
  addEventListener("pointerdown", ({ target }) => (pressed = partOf(target)), true);
  // The click event comes after this one and before the timeout.
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => setTimeout(() => (pressed = null)), true);
  addEventListener("click", ({ target }) => {
    const part = partOf(target);
    if (part) clicked.set(part, performance.now());
  }, true);
}

/** @param {Element} part */
export function isInUse(part) {
  if (pressed && (pressed === part || part.contains(pressed))) return true;
  if (part.closest("details[open]")) return true;
  return performance.now() - (clicked.get(part) ?? -AFTER_CLICK_MS) < AFTER_CLICK_MS;
}

/** @param {EventTarget | null} target */
function partOf(target) {
  return target instanceof Element ? target.closest(PARTS) : null;
}
