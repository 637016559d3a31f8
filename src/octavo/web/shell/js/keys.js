// Keyboard shortcuts. Single letters can be disabled and are ignored in fields.

import { all, canWrite, isField, one } from "./dom.js";
import { closeDock } from "./dock.js";
import { openBox } from "./paste.js";
import { openPalette } from "./palette.js";

const PLACES = { l: "/library", s: "/search", q: "/ask", c: "/connections", h: "/highlights", a: "/analyses", v: "/conversions", n: "/notifications", o: "/operations" };
const SECOND_MS = 1500;

let went = -SECOND_MS;

export function startKeys() {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    if ((event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return openPalette();
    }
    if (one("dialog[open]")) return;
    if (event.key === "Escape") return escape(event);
    if (event.ctrlKey || event.metaKey || event.altKey || isField(event.target) || areOff()) return;
    if (press(event)) event.preventDefault();
  });
}

const areOff = () => document.cookie.split("; ").includes("octavo_keys=off");

/** Closes the top layer only. @param {KeyboardEvent} event */
function escape(event) {
  const menu = one("details.menu[open]");
  if (menu) {
    menu.removeAttribute("open");
    one("summary", menu).focus();
  } else if (!closeDock() && document.dispatchEvent(new Event("clear-selection", { cancelable: true })) && isField(event.target)) {
    /** @type {HTMLElement} */ (event.target).blur();
  }
}

/** @param {KeyboardEvent} event @returns {boolean} whether the key was handled */
function press(event) {
  const now = performance.now();
  const place = PLACES[/** @type {keyof typeof PLACES} */ (event.key)];
  if (now - went < SECOND_MS && place) {
    location.assign(place);
    return true;
  }
  went = event.key === "g" ? now : -SECOND_MS;
  const act = KEYS[event.key];
  return act ? act(event) !== false : event.key === "g";
}

/** @type {Record<string, (event: KeyboardEvent) => unknown>} */
const KEYS = {
  "?": () => import("./help.js").then(({ showHelp }) => showHelp(PLACES)),
  "/": () => (one("#find") ? one("#find").focus() : openPalette()),
  n: () => (!canWrite() ? false : one("#paste") ? one("#paste").focus() : openBox()),
  j: () => move(1),
  k: () => move(-1),
  Enter: (event) => (event.target === document.body || /** @type {Element} */ (event.target).matches(".row") ? open() : false),
  x: () => pick(false),
  X: () => pick(true),
  Delete: () => (one("#documents .pick input:checked") ? one('#bulk [value="delete"]').click() : false),
  u: () => one("#toasts .toast:last-child button:not([aria-label])")?.click(),
  r: () => current() && one(".verb :is(button, a)", current())?.click(),
};

// The list ----------------------------------------------------------------------------------------------------------

const rows = () => all("#documents > .row[data-document]");

/** The row that shortcuts act on: the focused or last focused one. */
function current() {
  return document.activeElement?.closest(".row") ?? one(".row.current");
}

/** @param {number} by */
function move(by) {
  const every = rows();
  if (!every.length) return false;
  const at = every.indexOf(current());
  const next = every[at < 0 ? (by > 0 ? 0 : every.length - 1) : Math.min(every.length - 1, Math.max(0, at + by))];
  for (const row of all(".row.current")) row.classList.remove("current");
  next.classList.add("current");
  const title = one(".title", next);
  title.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function open() {
  const row = current();
  if (!row) return false;
  one(".title", row).click();
}

/** @param {boolean} withRange */
function pick(withRange) {
  const row = current();
  if (!row || !one("#bulk")) return false;
  document.dispatchEvent(new CustomEvent("pick-row", { detail: { row, withRange } }));
}
