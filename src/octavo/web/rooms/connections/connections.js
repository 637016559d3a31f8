// Keyboard for the map: one Tab stop, arrows move to the next document in that direction. The slider submits its form when it is moved.

import { all, decimal, one } from "../../shell/js/dom.js";

const STEPS_MS = 300;
const STEPS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

/** @type {SVGAElement[]} */
const dots = all("#map .dot");

/** @param {SVGAElement} dot */
function place(dot) {
  const circle = one("circle", dot);
  return [circle.cx.baseVal.value, circle.cy.baseVal.value];
}

/** The nearest dot in a direction; sideways distance counts double. @param {SVGAElement} from @param {number[]} step */
function next(from, [dx, dy]) {
  const [x, y] = place(from);
  let [best, least] = [from, Infinity];
  for (const dot of dots) {
    const [toX, toY] = place(dot);
    const ahead = (toX - x) * dx + (toY - y) * dy;
    const aside = Math.abs((toX - x) * dy) + Math.abs((toY - y) * dx);
    if (ahead > 0 && ahead + 2 * aside < least) [best, least] = [dot, ahead + 2 * aside];
  }
  return best;
}

/** @param {SVGAElement} dot */
function choose(dot) {
  for (const each of dots) each.setAttribute("tabindex", each === dot ? "0" : "-1");
  dot.focus();
}

for (const [at, dot] of dots.entries()) {
  dot.setAttribute("tabindex", at ? "-1" : "0");
  dot.addEventListener("keydown", (event) => {
    const step = STEPS[/** @type {keyof typeof STEPS} */ (event.key)];
    if (!step || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    choose(next(dot, step));
  });
}

const form = one("[data-least]");
one("button", form).hidden = true;
form.addEventListener("input", (/** @type {Event} */ { target }) => (one("output", form).value = decimal(Number(/** @type {any} */ (target).value))));
// Wait for further arrow keys; the next page focuses the slider again.
form.action += `#${one("input[type=range]", form).id}`;
let timer = 0;
form.addEventListener("change", () => {
  clearTimeout(timer);
  timer = setTimeout(() => form.requestSubmit(), STEPS_MS);
});
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.defaultPrevented && !one("dialog[open], details.menu[open]")) one("[data-close-pair]")?.click();
});
