// The queue of conversions: several files go one by one, and every row says how it is without anybody asking.

import { Refused, ask, fetchPiece } from "./ask.js";
import { all, bytes, count, one, parse } from "./dom.js";
import { onEvent, onLost, wake } from "./live.js";
import { announce, toast } from "./toast.js";

const LEAST_MS = 500;
const LATER_MS = 1000;
const AT_ONCE = 3;
const PARTS = [".what", ".how", ".sure", ".verbs"];
const ENDS = { complete: "is converted", failed: "could not be converted", dead_letter: "could not be converted" };

const form = one("#convert");
const queue = one("#queue");
const arrived = one("#arrived");
/** @type {HTMLElement[]} rows that wait to be shown */
let waiting = [];
let pressed = false;
let last = 0;
let planned = 0;

// Sending -----------------------------------------------------------------------------------------------------------

/** @param {Iterable<File>} files */
async function send(files) {
  const line = [...files];
  wake();
  const go = async () => {
    for (let file = line.shift(); file; file = line.shift()) await sendOne(file);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, go));
}

/** @param {File} file */
async function sendOne(file) {
  try {
    const most = Number(document.body.dataset.uploadBytes);
    if (file.size > most) throw new Refused({ title: `It is larger than ${bytes(most)}.`, code: "TOO_LARGE" });
    const address = `/api/v1/conversions?mapping=${encodeURIComponent(one("#mapping").value)}`;
    const headers = { "x-upload-filename": encodeURIComponent(file.name), "content-type": "application/pdf" };
    await ask(address, { method: "POST", body: file, headers });
  } catch (error) {
    toast(`${file.name}: ${error instanceof Refused ? error.cause : error}`, { tone: "bad" });
  }
  await refresh({ all: true });
}

if (form) {
  const chosen = one("#file");
  chosen.multiple = true;
  one('label[for="file"]').textContent = "PDFs";
  form.addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    const files = [...chosen.files];
    form.reset();
    send(files);
  });
  form.addEventListener("dropped", (/** @type {CustomEvent} */ event) => send(event.detail));
}

// Fresh rows --------------------------------------------------------------------------------------------------------

function plan() {
  if (planned || document.hidden) return;
  planned = setTimeout(refresh, Math.max(0, last + LEAST_MS - Date.now()));
}

/** @param {{all?: boolean}} [how] `all`: what is new is this page's own, and shown at once */
async function refresh({ all: isOwn = false } = {}) {
  try {
    show(all("[data-conversion]", parse(await fetchPiece(queue.dataset.rows))), isOwn);
  } catch {
    // The server is away for a moment; the next event asks again.
  } finally {
    last = Date.now();
    planned = 0;
  }
}

/** @param {HTMLElement[]} fresh @param {boolean} isOwn */
function show(fresh, isOwn) {
  /** @type {HTMLElement[]} */
  const unknown = [];
  for (const now of fresh) {
    const row = document.getElementById(now.id);
    if (!row) unknown.push(document.adoptNode(now));
    else patch(row, now);
  }
  waiting = unknown;
  if (isOwn || !queue.children.length) showWaiting();
  arrived.hidden = !waiting.length;
  arrived.textContent = `${count(waiting.length, "new conversion")} · Show`;
}

/** What somebody stands on or presses stays; the rest of its row goes on. @param {HTMLElement} row @param {HTMLElement} now */
function patch(row, now) {
  const end = ENDS[/** @type {keyof typeof ENDS} */ (now.dataset.status)];
  if (end && row.dataset.status !== now.dataset.status) announce(`${one("a", now).textContent} ${end}.`);
  row.className = now.className;
  row.dataset.status = now.dataset.status;
  for (const part of PARTS) {
    const [old, next] = [one(part, row), one(part, now)];
    if (old.innerHTML === next.innerHTML) continue;
    if (isInUse(old)) setTimeout(plan, LATER_MS);
    else old.replaceChildren(...next.childNodes);
  }
}

function showWaiting() {
  queue.prepend(...waiting);
  waiting = [];
  arrived.hidden = true;
}

/** @param {Element} part */
const isInUse = (part) => pressed || part.contains(document.activeElement);

arrived.addEventListener("click", () => {
  showWaiting();
  one("a", queue).focus();
});
addEventListener("pointerdown", () => (pressed = true), true);
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => setTimeout(() => (pressed = false)), true);
document.addEventListener("visibilitychange", plan);
onEvent(plan);
onLost(plan);
