// Toasts: success disappears after 5 s, undo after 8 s, errors stay. Also announcements for screen readers.

import { icon, make, one, t } from "./dom.js";

const DONE_MS = 5000;
const UNDO_MS = 8000;
const MOST = 3;
const ALOUD_MS = 5000;

/**
 * @param {string | Node} text
 * @param {{tone?: "ok" | "bad", verb?: string, act?: () => void, ms?: number, href?: string}} [options]
 */
export function toast(text, { tone = "ok", verb, act, ms, href } = {}) {
  const place = one("#toasts");
  const close = () => note.remove();
  const action = verb && (href ? make("a", { href }, verb) : make("button", { type: "button", click: () => (close(), act?.()) }, verb));
  const note = make(
    "div",
    { class: `toast ${tone}` },
    icon(tone === "bad" ? "error" : "check"),
    make("span", { class: "text" }, text),
    action || null,
    make("button", { type: "button", "aria-label": t("Close"), click: close }, icon("close")),
  );
  place.append(note);
  while (place.children.length > MOST) place.firstElementChild.remove();
  const wait = ms ?? (tone === "bad" ? 0 : DONE_MS);
  if (wait) leaveAfter(note, wait);
}

/** @param {string} text @param {() => void} [act] undoes it, if it can be undone */
export const undoable = (text, act) => toast(text, act && { verb: t("Undo"), act, ms: UNDO_MS });

/** @param {any} error */
export const complain = (error) => toast(error.cause ?? String(error), { tone: "bad" });

/** Closes the toast after a delay, but not while the pointer or the focus is on it. @param {HTMLElement} note @param {number} ms */
function leaveAfter(note, ms) {
  setTimeout(() => (note.matches(":hover, :focus-within") ? leaveAfter(note, 1000) : note.remove()), ms);
}

// Announcements -----------------------------------------------------------------------------------------------------

/** @type {string[]} */
let waiting = [];
let last = -ALOUD_MS;
let timer = 0;

/** Announces a text to screen readers, at most once in five seconds. @param {string} text */
export function announce(text) {
  waiting.push(text);
  if (!timer) timer = setTimeout(speak, Math.max(250, last + ALOUD_MS - performance.now()));
}

function speak() {
  one("#announcements").textContent = waiting.length > 3 ? t("%(number)s documents have changed.", { number: waiting.length }) : waiting.join(" ");
  waiting = [];
  timer = 0;
  last = performance.now();
}
