// Selecting rows: checkboxes, a range with Shift, a long press on touch. The selection survives updates.

import { all, count, one } from "./dom.js";
import { request } from "./request.js";
import { wake } from "./live.js";
import { list, refresh, rowOf } from "./patch.js";
import { complain, toast, undoable } from "./toast.js";
import { removeRow, restore, showStart } from "./verbs.js";

const LONG_MS = 500;

/** @type {HTMLInputElement | null} */
let last = null;

const boxes = () => /** @type {HTMLInputElement[]} */ (all("#documents .pick input"));
const picked = () => boxes().filter((box) => box.checked);

export function startSelecting() {
  const rows = list();
  const bar = one("#bulk");
  if (!rows || !bar) return;
  rows.addEventListener("click", (/** @type {MouseEvent} */ event) => {
    const box = event.target;
    if (!(box instanceof HTMLInputElement) || !box.matches(".pick input")) return;
    if (event.shiftKey && last?.isConnected) range(last, box);
    last = box;
    showBar();
  });
  rows.addEventListener("change", showBar);
  document.addEventListener("rows-changed", showBar);
  one("[data-clear]", bar).addEventListener("click", clearSelection);
  bar.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
    const button = /** @type {HTMLButtonElement | null} */ (event.submitter);
    if (button?.hasAttribute("formaction")) return; // it leads to another page
    event.preventDefault();
    act(bar, button);
  });
  listenForLongPress(rows);
  showBar(); // browsers restore checkboxes after going back
}

/** @param {HTMLInputElement} from @param {HTMLInputElement} to */
function range(from, to) {
  const every = boxes();
  const [start, end] = [every.indexOf(from), every.indexOf(to)].sort((a, b) => a - b);
  for (const box of every.slice(start, end + 1)) box.checked = to.checked;
}

/** @param {HTMLElement} row @param {boolean} [withRange] */
export function toggle(row, withRange = false) {
  const box = /** @type {HTMLInputElement | null} */ (one(".pick input", row));
  if (!box) return;
  box.checked = !box.checked;
  if (withRange && last?.isConnected) range(last, box);
  last = box;
  showBar();
}

/** @returns {boolean} whether anything was selected */
export function clearSelection() {
  const were = picked();
  for (const box of were) box.checked = false;
  list()?.classList.remove("picking");
  showBar();
  return were.length > 0;
}

function showBar() {
  const bar = one("#bulk");
  if (!bar) return;
  const number = picked().length;
  bar.hidden = number === 0;
  one("[data-picked]", bar).textContent = number.toLocaleString("en");
}

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

// Bulk actions -----------------------------------------------------------------------------------------------------

/** @param {HTMLFormElement} bar @param {HTMLButtonElement | null} button */
async function act(bar, button) {
  const ids = picked().map((box) => box.value);
  const action = button?.value ?? "tag";
  const tag = one("#bulk-tag", bar);
  if (!ids.length) return;
  if (action === "tag" && !tag.value.trim()) return tag.focus();
  const data = new URLSearchParams([...ids.map((id) => ["ids", id]), ["action", action], ["tag", tag.value]]);
  wake();
  try {
    await request(bar.getAttribute("action") ?? "", { method: "POST", body: data });
  } catch (error) {
    return complain(error);
  }
  const rows = /** @type {HTMLElement[]} */ (ids.map(rowOf).filter((row) => row));
  if (action === "delete") {
    // From the bottom up, so that each row remembers the one after it.
    const back = rows.reverse().map(removeRow).reverse();
    undoable(`${count(ids.length, "document")} moved to the trash.`, () => restore(ids, () => back.forEach((put) => put())));
  } else if (action === "retry") {
    rows.forEach(showStart);
    clearSelection();
  } else {
    toast(`${count(ids.length, "document")} tagged.`);
    tag.value = "";
    clearSelection();
  }
  refresh(...ids);
}
