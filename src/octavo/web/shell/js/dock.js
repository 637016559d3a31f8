// The dock in the rail: every upload and its job share one item, from the first byte to the end. Items do not
// move: the next job takes a free place, and finished items are removed only when nothing else has to move.

import { all, make, one, t } from "./dom.js";
import { isInUse } from "./in-use.js";

const LEAVE_MS = 6000;
const ENDS = { complete: t("Done"), failed: t("Failed"), dead_letter: t("Failed for good"), cancelled: t("Cancelled"), stopped: t("Stopped") };

/** @type {Map<string, string>} how jobs ended */
const ends = new Map();

const dock = () => one("#dock");
const items = () => one(".dock-items", dock());

export function startDock() {
  dock()?.addEventListener("click", (/** @type {MouseEvent} */ event) => {
    if (event.target instanceof Element && event.target.closest(".dock-ring")) toggle();
  });
  addEventListener("pointerdown", ({ target }) => isOpen() && target instanceof Node && !dock().contains(target) && toggle(false));
}

const isOpen = () => dock()?.hasAttribute("data-open");

/** @param {boolean} [open] */
function toggle(open = !isOpen()) {
  dock().toggleAttribute("data-open", open);
  one(".dock-ring", dock())?.setAttribute("aria-expanded", String(open));
}

/** Closes the dock if it is open over the page. */
export function closeDock() {
  const was = isOpen() && one(".dock-ring", dock())?.checkVisibility();
  if (was) toggle(false);
  return Boolean(was);
}

// Uploads of this tab -----------------------------------------------------------------------------------------------

/** @param {HTMLElement[]} added */
export function addToDock(added) {
  if (!items()) dock().append(make("div", { class: "dock-head" }, make("h2", { class: "small" }, t("Working now"))), make("ul", { class: "dock-items" }));
  items().prepend(...added);
  showRing();
}

/** The upload is done; from now on this item shows its job. @param {HTMLElement} item @param {{process_id: string, document_id: string}} outcome */
export function handOver(item, { process_id, document_id }) {
  item.id = `dock-${process_id}`;
  item.dataset.job = process_id;
  item.dataset.document = document_id;
  item.dataset.sent = "";
  if (ends.has(process_id)) end(item);
}

/** @param {HTMLElement} item */
export function leaveDock(item) {
  item.classList.add("done");
  setTimeout(() => {
    if (item.classList.contains("done")) item.dataset.over = "";
    sweep();
  }, LEAVE_MS);
}

// Jobs of the server -------------------------------------------------------------------------------------------

/** @param {string} job @param {string} state */
export function tellDock(job, state) {
  if (!(state in ENDS)) return void ends.delete(job);
  ends.set(job, state);
  const item = document.getElementById(`dock-${job}`);
  if (item && ("sent" in item.dataset || item.classList.contains("done"))) end(item);
}

/** @param {HTMLElement} now as rendered by the server @param {number} active number of active jobs */
export function patchDock(now, active) {
  const place = dock();
  if (!place) return;
  const fresh = one(".dock-items", now);
  if (!items()) {
    if (!fresh) return;
    one(".dock-ring", place)?.remove();
    place.append(...now.childNodes);
  } else {
    patchHead(one(".dock-ring", place), one(".dock-ring", now));
    patchHead(one(".dock-head", place), one(".dock-head", now));
    patchItems(fresh ? [...fresh.children] : [], active);
  }
  if (!active) {
    delete one(".dock-ring", place)?.dataset.count;
    one(".dock-head a", place)?.remove();
  }
  showRing();
}

/** @param {any} part @param {any} now */
function patchHead(part, now) {
  if (!now || !part || part.innerHTML === now.innerHTML) return;
  part.replaceChildren(...now.childNodes);
  for (const name of ["aria-label", "data-count"]) if (now.hasAttribute(name)) part.setAttribute(name, now.getAttribute(name));
}

/** @param {any[]} fresh @param {number} active */
function patchItems(fresh, active) {
  const wanted = new Map(fresh.map((item) => [item.id, item]));
  const free = [];
  /** @type {Map<string, any>} items of documents whose job is no longer listed */
  const left = new Map();
  for (const item of /** @type {any} */ (Array.from(items().children))) {
    const now = wanted.get(item.id);
    wanted.delete(item.id);
    if (now) fill(item, now);
    else {
      if (item.dataset.document) left.set(item.dataset.document, item);
      if (item.dataset.job && (!active || !("sent" in item.dataset))) free.push(item);
    }
  }
  for (const now of wanted.values()) {
    const same = left.get(now.dataset.document);
    if (same) {
      // The next job of a document is shown by the same item, so that no document is listed twice.
      left.delete(now.dataset.document);
      if (free.includes(same)) free.splice(free.indexOf(same), 1);
      same.id = now.id;
      same.dataset.job = now.dataset.job;
      delete same.dataset.sent;
      fill(same, now);
      continue;
    }
    const place = free.find((item) => !isInUse(item) && !item.matches(":hover, :focus-within"));
    if (place) {
      free.splice(free.indexOf(place), 1);
      left.delete(place.dataset.document);
      place.replaceWith(now);
    } else if (items().scrollHeight > items().clientHeight) items().append(now);
    else items().prepend(now);
  }
  for (const item of free) end(item);
  showFirst();
}

/** Replaces only the content, so that the element under the pointer stays the same. @param {HTMLElement} item @param {HTMLElement} now */
function fill(item, now) {
  if (isInUse(item) || item.innerHTML === now.innerHTML) return;
  item.className = now.className;
  delete item.dataset.over;
  // A focused button stays; only the progress changes.
  if (item.contains(document.activeElement)) for (const part of ["progress", ".what"]) one(part, item)?.replaceWith(one(part, now) ?? "");
  else item.replaceChildren(...now.childNodes);
}

/** Shows how the job ended, if known, and removes the item after a while. @param {HTMLElement} item */
function end(item) {
  const how = /** @type {keyof typeof ENDS | undefined} */ (ends.get(item.dataset.job ?? ""));
  const said = how ? ENDS[how] : t("Ended");
  if (item.classList.contains("done") && (!how || one(".what", item)?.textContent === said)) return;
  item.className = `dock-item${how === "failed" || how === "dead_letter" ? " failed" : ""}`;
  one(".what", item)?.replaceChildren(make("span", { class: "cut" }, said));
  const bar = one("progress", item);
  if (bar) bar.value = how === "complete" ? bar.max : bar.value;
  for (const part of all("form, .top > button, .detail", item)) part.remove();
  leaveDock(item);
}

/** Scrolls a long list to the first active item. */
function showFirst() {
  const place = items();
  if (!place || place.matches(":hover, :focus-within") || place.scrollHeight <= place.clientHeight) return;
  const first = one(".dock-item:not(.done)", place);
  if (first) place.scrollTop = first.offsetTop;
}

/** Finished items are removed from the top, or all together once nothing is active, so that the rest does not move. */
export function sweep() {
  const place = items();
  if (!place) return;
  if (place.matches(":hover")) return void setTimeout(sweep, 1000);
  const open = all(".dock-item:not([data-over])", place);
  if (open.every((item) => item.classList.contains("failed"))) for (const item of all("[data-over]", place)) item.remove();
  else if (place.scrollHeight <= place.clientHeight) while (place.firstElementChild.hasAttribute("data-over")) place.firstElementChild.remove();
  if (!place.childElementCount) for (const part of all(":scope > .dock-head, :scope > .dock-items", dock())) part.remove();
  showRing();
}

/** On a narrow rail the ring represents the whole dock. */
export function showRing() {
  const place = dock();
  if (!items()) {
    one(".dock-ring", place)?.remove();
    return toggle(false);
  }
  let ring = one(".dock-ring", place);
  if (!ring) {
    ring = make("button", { class: "dock-ring", type: "button", "aria-expanded": "false" }, make("span", { class: "number" }));
    place.prepend(ring);
  }
  const number = Math.max(all(".dock-item:not(.done)", place).length, Number(ring.dataset.count ?? 0));
  one(".number", ring).textContent = String(number);
  ring.setAttribute("aria-label", t("%(working)s working now", { working: number }));
}
