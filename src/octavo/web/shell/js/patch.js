// Updates the page without moving anything: an event names a document, its row is fetched again, and only the parts that
// changed are replaced. Order, scroll position, focus, selection and open menus stay.

import { all, format, one, parse, plural, t } from "./dom.js";
import { fetchPiece } from "./request.js";
import { patchDock, tellDock } from "./dock.js";
import { isInUse } from "./in-use.js";
import { onEvent, onLost, settle } from "./live.js";
import { isArrival, noteArrival } from "./arrivals.js";
import { announce } from "./toast.js";

const BATCH_MS = 250;
const HIDDEN_MS = 5000;
// Progress makes no events, and the place in the queue depends on other jobs.
const LOOK_MS = 2000;
const MOST = 100;
const LATER_MS = 700;
const PARTS = [".picture", ".title", ".about", ".size", ".added", ".state", ".verb", ".menu > .items"];
const FLAGS = ["attention", "failed", "working"];
// Events that never add a row. Thousands of them may arrive after an action on many documents.
const QUIET = new Set(["edited", "deleted", "downloaded"]);
const ENDS = { complete: t("%(name)s is ready"), failed: t("%(name)s failed"), dead_letter: t("%(name)s failed") };
/** @type {Record<string, string>} for the dock */
const ANALYSIS_ENDS = { completed: "complete", stopped: "stopped", failed: "failed", abandoned: "failed" };

/** @type {Set<string>} documents that changed */
const changed = new Set();
/** @type {Map<string, {process: string, how: keyof typeof ENDS}[]>} ended jobs by document, announced with the new title */
const ended = new Map();
let frameChanged = false;
let timer = 0;
let busy = false;
let active = 0;
let frameAt = "0-0";

export const list = () => one("#documents");
/** @param {string} id */
export const rowOf = (id) => document.getElementById(`d-${id}`);

export function startPatching() {
  onEvent((event) => {
    frameChanged = true;
    if (event.state_after) tellDock(event.process_id, event.state_after);
    const [thing, end] = event.kind.split(".");
    if (thing === "analysis" && end in ANALYSIS_ENDS) tellDock(`analysis-${event.process_id}`, ANALYSIS_ENDS[end]);
    if (event.document_id && (!QUIET.has(event.kind) || rowOf(event.document_id))) {
      changed.add(event.document_id);
      if (event.state_after && event.state_after in ENDS) noteEnd(event);
    }
    plan();
  });
  onLost(refreshAll);
  document.addEventListener("rows-shown", (/** @type {any} */ { detail }) => refresh(...detail)); // they may be outdated
  active = Number(document.body.dataset.active ?? 0);
  setInterval(look, LOOK_MS);
  document.addEventListener("visibilitychange", () => !document.hidden && refreshAll());
}

/** Fetch these documents soon. @param {...string} ids */
export function refresh(...ids) {
  for (const id of ids) changed.add(id);
  frameChanged = true;
  plan();
}

export function refreshAll() {
  refresh(...all("#documents > [data-document]").map((row) => row.dataset.document));
}

/** Progress of jobs comes without events. */
function look() {
  if (!active || document.hidden || busy) return;
  refresh(...all('#documents > [data-status="pending"]').filter(isInSight).map((row) => row.dataset.document));
}

/** @param {Element} row */
function isInSight(row) {
  const { top, bottom } = row.getBoundingClientRect();
  return bottom > -200 && top < innerHeight + 200;
}

function plan() {
  if (!timer) timer = setTimeout(flush, document.hidden ? HIDDEN_MS : BATCH_MS);
}

async function flush() {
  timer = 0;
  if (busy) return plan();
  busy = true;
  const ids = [...changed].slice(0, MOST);
  const withFrame = frameChanged;
  frameChanged = false;
  for (const id of ids) changed.delete(id);
  try {
    const wanted = list() ? ids : [];
    await Promise.all([wanted.length ? patchRows(wanted) : null, withFrame ? patchFrame() : null]);
    announceEnds(ids);
  } catch {
    // The server is not responding; try again later.
    for (const id of ids) changed.add(id);
    frameChanged ||= withFrame;
    setTimeout(plan, LOOK_MS);
  } finally {
    busy = false;
  }
  if (changed.size) plan();
}

// Rows ------------------------------------------------------------------------------------------------------------

/** Current rows by document. @param {string[]} ids @returns {Promise<Map<string, HTMLElement>>} */
export async function fetchRows(ids) {
  const query = new URLSearchParams(ids.map((id) => ["id", id]));
  query.set("view", list()?.dataset.view ?? "");
  const rows = all(".row", parse(await fetchPiece(`/fragments/rows?${query}`)));
  return new Map(rows.map((row) => [row.dataset.document, document.adoptNode(row)]));
}

/** @param {string[]} ids */
async function patchRows(ids) {
  // A row that is restored meanwhile is missing in the response.
  const asked = performance.now();
  const there = new Set(ids.map(rowOf));
  const fresh = await fetchRows(ids);
  for (const id of ids) {
    const row = rowOf(id);
    const now = fresh.get(id);
    if (row && now) patchRow(row, now);
    else if (row && there.has(row) && !wasRestored(row, asked)) leave(row);
    else if (now && isArrival(now)) noteArrival(now);
  }
}

/** The row stays the same element when it is deleted and restored. @param {HTMLElement} row @param {number} since */
function wasRestored(row, since) {
  return Number(row.dataset.restored ?? 0) > since;
}

/** @param {HTMLElement} row @param {HTMLElement} now */
export function patchRow(row, now) {
  if (isOlder(now.dataset.at, row.dataset.at)) return;
  let whole = true;
  for (const part of PARTS) whole = patchPart(one(part, row), one(part, now)) && whole;
  for (const flag of FLAGS) row.classList.toggle(flag, now.classList.contains(flag));
  for (const name of ["process", "status", "revision", "fits", "at"]) row.dataset[name] = now.dataset[name] ?? "";
  const tab = list()?.dataset.status;
  row.classList.toggle("leaving", Boolean(tab) && now.dataset.fits !== tab);
  if (!whole) setTimeout(refresh, LATER_MS, row.dataset.document);
}

/** Whether the part is up to date now. @param {any} part @param {any} now */
function patchPart(part, now) {
  if (!part || !now) return true;
  if (part.className !== now.className) part.className = now.className;
  if (part.innerHTML === now.innerHTML) return true;
  if (isInUse(part)) return false;
  // If a focused button is replaced, focus the row, where a second Enter does nothing.
  const focused = part.contains(document.activeElement) && part !== document.activeElement;
  part.replaceChildren(...now.childNodes);
  if (focused) {
    const row = part.closest(".row");
    row.tabIndex = -1;
    row.focus({ preventScroll: true });
  }
  return true;
}

/** Removes a deleted row once nobody uses the list. @param {HTMLElement} row */
export function leave(row) {
  row.classList.add("leaving");
  const go = () => {
    if (!row.classList.contains("leaving")) return; // it was restored
    if (list()?.matches(":hover, :focus-within")) return setTimeout(go, 500);
    row.remove();
    document.dispatchEvent(new CustomEvent("rows-changed"));
  };
  setTimeout(go, 400);
}

/** @param {string | undefined} left @param {string | undefined} right event cursors */
export function isOlder(left, right) {
  const [a, b] = [left, right].map((place) => (place || "0-0").split("-").map(BigInt));
  return a[0] === b[0] ? a[1] < b[1] : a[0] < b[0];
}

// The frame -------------------------------------------------------------------------------------------------------

async function patchFrame() {
  const pieces = parse(await fetchPiece("/fragments/frame"));
  const numbers = one("[data-counts]", pieces)?.dataset;
  if (!numbers || isOlder(numbers.at, frameAt)) return;
  frameAt = numbers.at;
  active = Number(numbers.active);
  patchDock(one("#dock", pieces), active);
  for (const tab of all("[data-tab] > .count")) {
    const number = Number(numbers[tab.parentElement.dataset.tab] ?? 0);
    tab.textContent = format(number);
    tab.classList.toggle("warn", tab.parentElement.dataset.tab === "needs_you" && number > 0);
    tab.classList.toggle("bad", tab.parentElement.dataset.tab === "failed" && number > 0);
  }
  setNumber("library", Number(numbers.everything));
  const head = one('[data-count-of="library-head"]');
  if (head) head.textContent = plural("%(number)s document", "%(number)s documents", Number(numbers.everything));
  setBadge("notifications", Number(numbers.unread));
  setBadge("operations", Number(numbers.dead_letters));
  settle(active);
}

/** @param {string} name @param {number} number */
function setNumber(name, number) {
  const place = one(`[data-count-of="${name}"]`);
  if (place) place.textContent = number ? format(number) : "";
}

/** @param {string} name @param {number} number */
function setBadge(name, number) {
  const place = one(`[data-badge-of="${name}"]`);
  if (!place) return;
  place.hidden = !number;
  if (place.firstChild?.nodeType === Node.TEXT_NODE) place.firstChild.data = String(number);
  else place.prepend(String(number));
}

/** @param {import("./live.js").LiveEvent} event */
function noteEnd({ document_id: id, process_id: process, state_after }) {
  if (!id) return;
  const how = /** @type {keyof typeof ENDS} */ (state_after);
  ended.set(id, [...(ended.get(id) ?? []), { process, how }]);
}

/** Embeddings and connections have their own jobs; only the end of the main job is announced. @param {string[]} ids */
function announceEnds(ids) {
  for (const id of ids) {
    const row = rowOf(id);
    const end = ended.get(id)?.findLast(({ process }) => process === row?.dataset.process);
    ended.delete(id);
    const title = row && one(".title", row)?.textContent;
    if (end && title) announce(`${ENDS[end.how].replace("%(name)s", () => title)}.`);
  }
}
