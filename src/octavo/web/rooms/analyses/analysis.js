// Updates an analysis while it runs. Parts that are focused, open or pressed stay as they are.

import { fetchPiece } from "../../shell/js/request.js";
import { all, one, parse } from "../../shell/js/dom.js";
import { keepOneStop, markOpen } from "./analysis-grid.js";
import { onEvent, onLost } from "../../shell/js/live.js";
import { throttled } from "../../shell/js/throttle.js";

const LEAST_MS = 500;
const HEARTBEAT_MS = 5000;
const PLACES = ["#an-status", "#an-grid", "#an-answers"];

const { pieces } = one("#analysis").dataset;
const plan = throttled(async () => show(parse(await fetchPiece(pieces))), LEAST_MS);
let pressed = false;

/** @param {HTMLElement} fresh */
function show(fresh) {
  for (const place of PLACES) {
    const [here, now] = [one(place), one(place, fresh)];
    if (place === "#an-grid" && patchCells(here, now)) continue;
    if (isInUse(here) || here.innerHTML === now.innerHTML) continue;
    here.replaceChildren(...now.childNodes);
    here.dataset.status = now.dataset.status;
  }
}

/** Updates cells in place, so that the focus stays. @param {HTMLElement} here @param {HTMLElement} now */
function patchCells(here, now) {
  const [cells, fresh] = [all(".cell", here), all(".cell", now)];
  if (cells.length !== fresh.length || cells.some((cell, at) => cell.id !== fresh[at].id)) return replaceCells(here, now);
  for (const [at, cell] of cells.entries()) {
    if (cell.title === fresh[at].title) continue;
    cell.className = fresh[at].className;
    cell.title = fresh[at].title;
    cell.innerHTML = fresh[at].innerHTML;
  }
  return true;
}

/** Replaces the rows and restores the focus, for example after a segment was split. @param {HTMLElement} here @param {HTMLElement} now */
function replaceCells(here, now) {
  const focused = here.contains(document.activeElement) ? document.activeElement?.id : null;
  here.replaceChildren(...now.childNodes);
  if (focused) document.getElementById(focused)?.focus();
  keepOneStop();
  markOpen();
  return true;
}

/** @param {Element} place */
const isInUse = (place) =>
  pressed || place.contains(document.activeElement) || place.querySelector("details[open]") !== null;

addEventListener("pointerdown", () => (pressed = true), true);
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => setTimeout(() => (pressed = false)), true);
onEvent(plan);
onLost(plan);
// Elapsed time, heartbeat and time left change without events.
setInterval(() => one("#an-status").dataset.status === "analyzing" && plan(), HEARTBEAT_MS);
