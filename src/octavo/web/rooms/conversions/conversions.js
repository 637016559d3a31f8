// The queue of conversions: uploads several files and updates every row live.

import { RequestError, request, fetchPiece } from "../../shell/js/request.js";
import { all, one, parse, plural, t } from "../../shell/js/dom.js";
import { onEvent, onLost, wake } from "../../shell/js/live.js";
import { throttled } from "../../shell/js/throttle.js";
import { announce, toast } from "../../shell/js/toast.js";

const LEAST_MS = 500;
const LATER_MS = 1000;
const PARALLEL = 3;
const PARTS = [".what", ".how", ".sure", ".verbs"];
const ENDS = { complete: t("%(name)s was converted."), needs_review: t("%(name)s was converted and needs review."), failed: t("%(name)s could not be converted."), dead_letter: t("%(name)s could not be converted.") };

const form = one("#convert");
const queue = one("#queue");
const arrived = one("#arrived");
/** @type {HTMLElement[]} new rows that are not shown yet */
let waiting = [];
let pressed = false;
// How many files this page has sent, in total and at the last refresh.
let sent = 0;
let seen = 0;
const plan = throttled(refresh, LEAST_MS);

// Sending -----------------------------------------------------------------------------------------------------------

/** @param {Iterable<File>} files */
async function send(files) {
  const queued = [...files];
  wake();
  const go = async () => {
    for (let file = queued.shift(); file; file = queued.shift()) await sendOne(file);
  };
  await Promise.all(Array.from({ length: PARALLEL }, go));
}

/** @param {File} file */
async function sendOne(file) {
  try {
    const { uploadBytes, uploadLimit } = document.body.dataset;
    if (file.size > Number(uploadBytes)) throw new RequestError({ title: t("The file is larger than %(limit)s.", { limit: uploadLimit ?? "" }), code: "TOO_LARGE" });
    const address = `/api/v1/conversions?mapping=${encodeURIComponent(one("#mapping").value)}`;
    const headers = { "x-upload-filename": encodeURIComponent(file.name), "content-type": "application/pdf" };
    await request(address, { method: "POST", body: file, headers });
  } catch (error) {
    toast(`${file.name}: ${error instanceof RequestError ? error.cause : error}`, { tone: "bad" });
  }
  sent += 1;
  plan();
}

if (form) {
  const chosen = one("#file");
  chosen.multiple = true;
  one('label[for="file"]').textContent = t("PDFs");
  form.addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    const files = [...chosen.files];
    form.reset();
    send(files);
  });
  form.addEventListener("dropped", (/** @type {CustomEvent} */ event) => send(event.detail));
}

// Live updates-------------------------------------------------------------------------------------------------------

async function refresh() {
  const asked = sent;
  const body = parse(await fetchPiece(queue.dataset.rows));
  const [state, fresh] = [one("#cv-state"), one("#cv-state", body)];
  if (state.innerHTML !== fresh.innerHTML && !state.contains(document.activeElement)) state.replaceChildren(...fresh.childNodes);
  show(all("[data-conversion]", body), asked > seen);
  seen = asked;
}

/** @param {HTMLElement[]} fresh @param {boolean} isOwn new rows come from this page and are shown immediately */
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
  arrived.textContent = `${plural("%(number)s new conversion", "%(number)s new conversions", waiting.length)} · ${t("Show")}`;
}

/** Updates a row except for the part in use. @param {HTMLElement} row @param {HTMLElement} now */
function patch(row, now) {
  const end = ENDS[/** @type {keyof typeof ENDS} */ (now.dataset.status)];
  if (end && row.dataset.status !== now.dataset.status) announce(end.replace("%(name)s", one("a", now).textContent));
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
onEvent(plan);
onLost(plan);
