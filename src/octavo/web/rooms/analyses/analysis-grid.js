// Keyboard for the grid, and the panel next to it: arrows move, Enter opens, Escape closes and restores the focus, r runs
// the item again.

import { all, one, parse, t } from "../../shell/js/dom.js";
import { request, fetchPiece } from "../../shell/js/request.js";
import { wake } from "../../shell/js/live.js";
import { complain } from "../../shell/js/toast.js";

const STEPS = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] };

const holder = one("#analysis");
/** @type {string | null} the id of the element that opened the panel */
let opener = null;
// Only the response to the latest request is shown.
let asked = 0;

/** One cell is reachable with Tab: the last focused one, or the first. */
export function keepOneStop() {
  const cells = all(".cell", holder);
  const stop = document.activeElement?.closest(".cell") ?? one(`.cell[tabindex="0"]`, holder) ?? cells[0];
  for (const cell of cells) cell.tabIndex = cell === stop ? 0 : -1;
}

/** @param {HTMLElement} cell @param {number[]} step */
function move(cell, [down, across]) {
  const rows = all("#an-grid tbody tr").map((row) => [...row.cells].slice(1));
  const column = /** @type {HTMLTableCellElement} */ (cell.closest("td")).cellIndex - 1;
  const row = rows.findIndex((cells) => cells[column]?.contains(cell));
  let [y, x] = [row + down, column + across];
  // Skip parts without a cell.
  while (rows[y]?.[x] && !one(".cell", rows[y][x])) [y, x] = [y + down, x + across];
  const next = rows[y]?.[x] && one(".cell", rows[y][x]);
  if (!next) return;
  next.focus();
  keepOneStop();
}

/** @param {string} address @param {boolean} [remember] */
export async function openSide(address, remember = true) {
  const number = ++asked;
  const side = one("#side", parse(await fetchPiece(address)));
  if (number !== asked) return;
  one("#side")?.remove();
  holder.classList.toggle("with-page", Boolean(side));
  if (side) holder.append(document.adoptNode(side));
  if (remember) history.pushState(null, "", address);
  markOpen();
  one("#side")?.focus({ preventScroll: innerWidth >= 1200 });
}

function closeSide() {
  asked += 1;
  one("#side").remove();
  holder.classList.remove("with-page");
  history.pushState(null, "", holder.dataset.address);
  markOpen();
  (document.getElementById(opener ?? "") ?? one(`.cell[tabindex="0"]`, holder))?.focus();
}

export function markOpen() {
  const open = one("#side")?.dataset.item;
  for (const cell of all(".cell", holder)) {
    if (cell.dataset.item === open) cell.setAttribute("aria-current", "true");
    else cell.removeAttribute("aria-current");
  }
}

/** @param {string} item */
async function askAgain(item) {
  const body = new URLSearchParams({ item });
  wake();
  await request(`${holder.dataset.address}/rerun`, { method: "POST", body });
  one("#announcements").textContent = t("Running again.");
}

holder.addEventListener("click", (/** @type {MouseEvent} */ event) => {
  const link = /** @type {any} */ (event.target).closest("a[data-side], a[data-close-side]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  if (link.matches("[data-close-side]")) return closeSide();
  if (link.id) opener = link.id;
  openSide(link.href).catch(complain);
});

holder.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
  const item = /** @type {HTMLElement} */ (event.target).dataset.again;
  if (!item) return;
  event.preventDefault();
  askAgain(item).then(() => openSide(`${holder.dataset.address}?item=${item}#side`, false), complain);
});

holder.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
  const cell = /** @type {any} */ (event.target).closest(".cell");
  if (!cell || event.ctrlKey || event.metaKey || event.altKey) return;
  const step = STEPS[/** @type {keyof typeof STEPS} */ (event.key)];
  if (step) {
    event.preventDefault();
    move(cell, step);
  } else if (event.key === "r" && !document.cookie.split("; ").includes("octavo_keys=off") && !document.body.hasAttribute("data-read-only")) {
    event.preventDefault();
    askAgain(cell.dataset.item).catch(complain);
  }
});

addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !event.defaultPrevented && one("#side") && !one("dialog[open], details.menu[open]")) closeSide();
});
addEventListener("popstate", () => openSide(location.href, false).catch(() => location.reload()));
keepOneStop();
markOpen();
