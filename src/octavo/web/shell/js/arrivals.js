// Documents added elsewhere wait behind a button, so that the list does not move while somebody reads it. Documents
// added in this tab are shown immediately.

import { all, format, one, plural, t } from "./dom.js";

// The response to an upload arrives at about the same time as its first event.
const DOUBT_MS = 1000;

/** @type {Set<string>} */
const own = new Set();
/** @type {Map<string, HTMLElement>} */
const waiting = new Map();
let newest = 0;

export function startArrivals() {
  newest = Math.max(0, ...all("#documents > [data-document]").map(added));
  one("#arrived")?.addEventListener("click", showArrived);
}

/** @param {string} id */
export function claim(id) {
  own.add(id);
  if (waiting.delete(id)) showNumber();
}

/** Whether new documents belong at the top of the list. */
export const takesNew = () => Boolean(one('#documents[data-sort="newest"]:not([data-narrowed], [data-later])'));

/** Whether a row that is not in the list belongs at the top of it. @param {HTMLElement} row */
export function isArrival(row) {
  return takesNew() && !own.has(row.dataset.document ?? "") && added(row) > newest;
}

/** @param {HTMLElement} row */
export function noteArrival(row) {
  const id = row.dataset.document ?? "";
  if (waiting.has(id)) return void waiting.set(id, row);
  setTimeout(() => {
    if (own.has(id) || document.getElementById(row.id)) return;
    waiting.set(id, row);
    showNumber();
  }, DOUBT_MS);
}

/** Put rows on top of the list. @param {...HTMLElement} rows newest first */
export function insert(...rows) {
  const list = one("#documents");
  if (!list) return;
  one("#empty")?.remove();
  list.hidden = false;
  list.prepend(...rows);
}

function showNumber() {
  const button = one("#arrived");
  if (!button) return;
  button.hidden = waiting.size === 0;
  button.textContent = `${t("%(number)s new", { number: format(waiting.size) })} · ${t("Show")}`;
  button.setAttribute("aria-label", plural("Show %(number)s new document", "Show %(number)s new documents", waiting.size));
}

function showArrived() {
  const rows = [...waiting.values()].sort((a, b) => added(b) - added(a));
  waiting.clear();
  showNumber();
  newest = Math.max(newest, ...rows.map(added));
  insert(...rows.filter((row) => !document.getElementById(row.id)));
  document.dispatchEvent(new CustomEvent("rows-shown", { detail: rows.map((row) => row.dataset.document) }));
  rows[0]?.scrollIntoView({ block: "nearest" });
}

/** @param {Element} row */
const added = (row) => Date.parse(one("time.added", row).dateTime);
