// Selecting rows (checkboxes, a range with Shift, a long press on touch) and acting on the selected documents, or on all
// that match the filters. The selection survives updates.

import { all, format, one, plural, t } from "../../shell/js/dom.js";
import { request } from "../../shell/js/request.js";
import { wake } from "../../shell/js/live.js";
import { list, refresh, refreshAll, rowOf } from "../../shell/js/patch.js";
import { complain, undoable } from "../../shell/js/toast.js";
import { removeRow, showStart } from "../../shell/js/verbs.js";

const LONG_MS = 500;
const ADDRESS = "/api/v1/documents/bulk";
/** Fields of the form, and the fields of the API. @type {Record<string, string>} */
const FIELDS = { new_collection: "collection", new_author: "author", new_date: "document_date", new_kind: "kind" };
/** @type {Record<string, string>} */
const TAGS = { add_tag: "add_tags", remove_tag: "remove_tags" };
/** @type {Record<string, (n: number) => string>} */
const DONE = {
  edit: (/** @type {number} */ n) => plural("%(number)s document changed.", "%(number)s documents changed.", n),
  delete: (/** @type {number} */ n) => plural("%(number)s document moved to the trash.", "%(number)s documents moved to the trash.", n),
  retry: (/** @type {number} */ n) => plural("%(number)s document queued again.", "%(number)s documents queued again.", n),
};

/** @type {HTMLInputElement | null} */
let last = null;
const shown = all("#documents > .row").length;

const boxes = () => /** @type {HTMLInputElement[]} */ (all("#documents .pick input"));
const picked = () => boxes().filter((box) => box.checked);
/** @returns {HTMLInputElement | null} the checkbox that selects all documents that match */
const every = () => one("#bulk [name=all]");

function start() {
  const rows = list();
  document.addEventListener("rows-changed", showNumbers);
  const bar = one("#bulk");
  if (!rows || !bar) return;
  rows.addEventListener("click", (/** @type {MouseEvent} */ event) => {
    const box = event.target;
    if (!(box instanceof HTMLInputElement) || !box.matches(".pick input")) return;
    if (event.shiftKey && last?.isConnected) range(last, box);
    last = box;
    showNumbers();
  });
  rows.addEventListener("change", showNumbers);
  every()?.addEventListener("change", showNumbers);
  document.addEventListener("pick-row", (/** @type {any} */ { detail }) => toggle(detail.row, detail.withRange));
  document.addEventListener("clear-selection", (event) => clear() && event.preventDefault());
  const button = one("[data-clear]", bar);
  button.hidden = false;
  button.addEventListener("click", clear);
  bar.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
    const button = /** @type {HTMLButtonElement | null} */ (event.submitter);
    if (button?.hasAttribute("formaction") || button?.value === "download") return; // the browser opens the response
    event.preventDefault();
    act(bar, button?.value ?? "edit");
  });
  listenForLongPress(rows);
  showNumbers(); // browsers restore checkboxes after going back
}

/** @param {HTMLInputElement} from @param {HTMLInputElement} to */
function range(from, to) {
  const known = boxes();
  const [start, end] = [known.indexOf(from), known.indexOf(to)].sort((a, b) => a - b);
  for (const box of known.slice(start, end + 1)) box.checked = to.checked;
}

/** @param {HTMLElement} row @param {boolean} [withRange] */
function toggle(row, withRange = false) {
  const box = /** @type {HTMLInputElement | null} */ (one(".pick input", row));
  if (!box) return;
  box.checked = !box.checked;
  if (withRange && last?.isConnected) range(last, box);
  last = box;
  showNumbers();
}

/** @returns {boolean} whether anything was selected */
function clear() {
  const were = picked();
  for (const box of were) box.checked = false;
  const all = every();
  if (all) all.checked = false;
  list()?.classList.remove("picking");
  showNumbers();
  return were.length > 0;
}

/** Shows how many documents are selected and how many match, or a message if none is left. */
function showNumbers() {
  const number = every()?.checked ? total() : picked().length;
  const place = one("[data-picked]");
  if (place) place.textContent = format(number);
  const left = all("#documents > .row").length;
  const matching = one("[data-matching]");
  if (matching) matching.textContent = format(Math.max(0, Number(matching.dataset.matching) - shown + left));
  const none = one("#no-match");
  if (none) list().hidden = !(none.hidden = left > 0);
}

const total = () => Number(one("#bulk").dataset.total);

/** @param {HTMLElement} rows */
function listenForLongPress(rows) {
  let timer = 0;
  rows.addEventListener("pointerdown", (event) => {
    const row = event.target instanceof Element ? /** @type {HTMLElement | null} */ (event.target.closest(".row")) : null;
    if (event.pointerType !== "touch" || !row) return;
    timer = setTimeout(() => {
      rows.classList.add("picking");
      toggle(row);
      rows.addEventListener("click", (click) => click.preventDefault(), { once: true, capture: true });
    }, LONG_MS);
  });
  for (const end of ["pointerup", "pointercancel", "pointermove"]) rows.addEventListener(end, () => clearTimeout(timer));
}

// Actions ----------------------------------------------------------------------------------------------------------

/** @param {HTMLFormElement} bar @param {string} action */
async function act(bar, action) {
  const ids = picked().map((box) => box.value);
  if (!ids.length) return;
  const edit = action === "edit" ? readEdit(new FormData(bar)) : undefined;
  if (edit && !Object.keys(edit).length) return one("#bulk-tag", bar).focus();
  const whole = every()?.checked;
  const which = whole ? { filter: JSON.parse(bar.dataset.filter ?? "{}") } : { ids };
  wake();
  const answer = await send(ADDRESS, { ...which, action, edit });
  if (!answer) return;
  const rows = /** @type {HTMLElement[]} */ ((whole ? boxes().map((box) => box.value) : ids).map(rowOf).filter((row) => row));
  let back = () => {};
  if (action === "delete") {
    // From the bottom up, so that each row remembers the one after it.
    const restored = rows.reverse().map(removeRow).reverse();
    back = () => restored.forEach((put) => put());
  }
  if (action === "retry") rows.forEach(showStart);
  for (const field of all(".input", bar)) field.value = "";
  for (const menu of all("details[open]", bar)) menu.removeAttribute("open");
  clear();
  tell(answer, action, back);
  refresh(...rows.map((row) => row.dataset.document ?? ""));
}

/** @param {any} answer @param {string} action @param {() => void} back */
function tell(answer, action, back) {
  if (answer.error) return complain(`${DONE[action](answer.changed)} ${t("Then: %(error)s", { error: `${t(answer.error.message)} (${answer.error.code})` })}`);
  undoable(DONE[action](answer.changed), answer.undo_id ? () => undo(answer.undo_id, back) : undefined);
}

/** @param {string} change @param {() => void} back */
async function undo(change, back) {
  wake();
  if (!(await send(`${ADDRESS}/${change}/undo`))) return;
  back();
  showNumbers();
  refreshAll();
}

/** @param {string} address @param {object} [body] @returns {Promise<any>} null after an error, which is shown */
async function send(address, body) {
  try {
    return await request(address, { method: "POST", body: body && JSON.stringify(body), headers: { "content-type": "application/json" } });
  } catch (error) {
    complain(error);
    return null;
  }
}

/** The changes in the form; empty fields change nothing. @param {FormData} form */
function readEdit(form) {
  /** @type {Record<string, any>} */
  const edit = {};
  const text = (/** @type {string} */ name) => String(form.get(name) ?? "").trim();
  for (const [field, name] of Object.entries(FIELDS)) if (text(field)) edit[name] = text(field);
  for (const [field, name] of Object.entries(TAGS)) {
    const tags = text(field).split(",").map((tag) => tag.trim()).filter((tag) => tag);
    if (tags.length) edit[name] = tags;
  }
  return edit;
}

start();
