// Action buttons: their forms are sent without leaving the page.

import { icon, make, one, t } from "./dom.js";
import { request } from "./request.js";
import { confirm } from "./dialog.js";
import { wake } from "./live.js";
import { list, refresh, rowOf } from "./patch.js";
import { welcome } from "./paste.js";
import { complain, undoable } from "./toast.js";

const STARTS = new Set(["retry", "restart", "resume", "classify", "clean", "reread"]);
// Normally an event updates the row; it is fetched again in any case.
const LOOK_MS = 1500;

export function startVerbs() {
  document.addEventListener("submit", (event) => {
    const form = /** @type {HTMLFormElement} */ (event.target);
    if (form.matches("form[data-verb], form[data-asks]")) {
      event.preventDefault();
      press(form);
    }
  });
  // A menu closes when something else is used.
  document.addEventListener("click", ({ target }) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (target instanceof Node && (!menu.contains(target) || (target instanceof Element && target.closest(".items :is(a, button)")))) menu.removeAttribute("open");
    }
  });
}

/** @param {HTMLFormElement} form */
async function press(form) {
  const button = /** @type {HTMLButtonElement} */ (one("button", form));
  if (button.getAttribute("aria-disabled") === "true") return;
  const { verb = "", asks } = form.dataset;
  const row = /** @type {HTMLElement | null} */ (form.closest("[data-document]"));
  const label = button.textContent?.trim() ?? "";
  if (asks && !(await confirm(question(verb, asks, label)))) return;
  const before = mark(button);
  const data = new URLSearchParams(/** @type {any} */ (new FormData(form)));
  if (asks) data.set("sure", "true");
  wake();
  try {
    const answer = await request(form.action, { method: "POST", body: data });
    await finish(verb, row, answer);
  } catch (error) {
    before();
    complain(error);
  }
}

/** @param {string} verb @param {string} thing @param {string} label */
function question(verb, thing, label) {
  if (verb === "discard") return { title: t("Discard “%(title)s”?", { title: thing }), text: t("This document will not be retried automatically. Its file is kept, so you can process it again later."), verb: label };
  return { title: `${label}?`, text: t("“%(title)s” will be deleted permanently. This cannot be undone.", { title: thing }), verb: label };
}

/** @param {HTMLButtonElement} button @returns {() => void} restores the button */
function mark(button) {
  const content = [...button.childNodes];
  const isGlyph = !button.textContent?.trim();
  button.setAttribute("aria-disabled", "true");
  if (!isGlyph && !button.closest(".menu")) {
    button.style.minWidth = `${button.offsetWidth}px`;
    button.replaceChildren(t("Requested…"));
  }
  return () => {
    button.removeAttribute("aria-disabled");
    button.replaceChildren(...content);
  };
}

/** @param {string} verb @param {HTMLElement | null} place @param {any} answer */
async function finish(verb, place, answer) {
  if (verb === "samples") return welcome(answer);
  const id = place?.dataset.document ?? "";
  if (!list() || verb === "imports") return location.reload();
  if (verb === "trash" && id) return takeAway(id);
  if (STARTS.has(verb) && rowOf(id)) showStart(/** @type {HTMLElement} */ (rowOf(id)));
  setTimeout(refresh, LOOK_MS, id);
}

/** Shows immediately that processing starts again. @param {HTMLElement} row */
export function showStart(row) {
  row.classList.remove("failed", "attention");
  one(".about", row).replaceChildren(make("span", { class: "skeleton" }));
  one(".state", row).replaceChildren(make("span", { class: "chip" }, icon("clock"), t("Waiting")));
}

/** @param {string} id */
function takeAway(id) {
  const row = rowOf(id);
  const title = (row && one(".title", row)?.textContent) || t("The document");
  const back = removeRow(row);
  undoable(t("%(title)s moved to the trash.", { title }), () => restore(id, back));
}

/** @param {HTMLElement | null} row @returns {() => void} restores it in place */
export function removeRow(row) {
  const after = row?.nextElementSibling ?? null;
  row?.remove();
  document.dispatchEvent(new CustomEvent("rows-changed"));
  return () => {
    if (!row) return;
    row.dataset.restored = String(performance.now());
    list()?.insertBefore(row, after?.isConnected ? after : null);
    document.dispatchEvent(new CustomEvent("rows-changed"));
  };
}

/** @param {string} id @param {() => void} back */
async function restore(id, back) {
  wake();
  try {
    await request(`/actions/documents/${id}/restore`, { method: "POST" });
    back();
    refresh(id);
  } catch (error) {
    complain(error);
  }
}
