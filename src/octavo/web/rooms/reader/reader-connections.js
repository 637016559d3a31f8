// The connections panel: its buttons work without leaving the page, and new connections appear live. While the list is
// in use, new ones wait behind a button, so that nothing moves under the pointer.

import { all, isField, make, one, parse, t } from "../../shell/js/dom.js";
import { request, fetchPiece } from "../../shell/js/request.js";
import { onEvent, onLost, wake } from "../../shell/js/live.js";
import { throttled } from "../../shell/js/throttle.js";
import { onClick, togglePanel } from "./reader-panels.js";
import { complain } from "../../shell/js/toast.js";

const BATCH_MS = 250;

const panel = one("#about");
const holder = one("#connections");
// Counts explicit requests for the list. If the list is requested during a background refresh, the refresh is dropped.
let asked = 0;
/** Requests are sent one after the other, so that the last change wins. */
let queue = Promise.resolve();

/** @param {string} name */
function showTab(name) {
  panel.dataset.tab = name;
  for (const link of all("[data-tab-of]", panel)) {
    if (link.dataset.tabOf === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

async function fetchList() {
  const { document: ident, of } = holder.dataset;
  return one("#connections-list", parse(await fetchPiece(`/documents/${ident}/connections${of ? `?of=${of}` : ""}`)));
}

/** @param {HTMLElement} list */
function put(list) {
  const open = all("details[open]", holder).map((each) => each.className);
  const focused = holder.contains(document.activeElement) ? document.activeElement : null;
  one("#connections-list", holder).replaceWith(document.adoptNode(list));
  for (const each of all("details", holder)) each.open = open.includes(each.className);
  one("[data-tab-count]", panel).textContent = Number(list.dataset.count) || "";
  one(".news", holder)?.remove();
  if (focused && !focused.isConnected) restoreFocus(focused);
}

/** Focuses the same slider, or the start of the list. @param {any} focused the removed element */
function restoreFocus({ type, name }) {
  const place = type === "range" ? one(`[name="${name}"]`, holder) : null;
  (place ?? one(".connection h3 a, .dismissed summary", holder))?.focus({ preventScroll: true });
}

async function showList() {
  const number = ++asked;
  const list = await fetchList();
  if (number === asked) put(list);
}

/** The state of the comparison changes in place, so that nothing below is offered as new. @param {HTMLElement} shown @param {HTMLElement} now */
function showComparison(shown, now) {
  if (shown.innerHTML === now.innerHTML) return;
  const focused = shown.contains(document.activeElement);
  shown.replaceWith(document.importNode(now, true));
  if (focused) restoreFocus(/** @type {any} */ ({}));
}

async function refresh() {
  const number = asked;
  const list = await fetchList();
  const shown = one("#connections-list", holder);
  if (number !== asked) return;
  showComparison(one(".comparison", shown), one(".comparison", list));
  if (list.innerHTML === shown.innerHTML) return;
  if (!holder.matches(":hover") && !holder.contains(document.activeElement)) return put(list);
  if (one(".news", holder)) return;
  const button = make("button", { class: "button news", type: "button" }, `${t("New connections")} · ${t("Show")}`);
  button.addEventListener("click", () => showList().catch(complain));
  holder.prepend(button);
}

/** @param {SubmitEvent} event */
function send(event) {
  const form = /** @type {HTMLFormElement} */ (event.target);
  event.preventDefault();
  const body = new URLSearchParams(/** @type {any} */ (new FormData(form)));
  queue = queue.then(() => post(form.action, body));
}

/** @param {string} address @param {URLSearchParams} body */
async function post(address, body) {
  try {
    wake();
    await request(address, { method: "POST", body });
    await showList();
    one("#announcements").textContent = t("Connections updated.");
  } catch (error) {
    complain(error);
  }
}

/** Shows only the connections of a passage, or all of them. @param {string | undefined} passage */
async function showOnly(passage) {
  if (passage) holder.dataset.of = passage;
  else delete holder.dataset.of;
  showTab("connections");
  if (document.body.classList.contains("about-closed") || !panel.offsetParent) togglePanel("about");
  await showList();
  one(".of-passage a, .connection h3 a", holder)?.focus({ preventScroll: true });
}

/** @param {MouseEvent} event */
function follow(event) {
  const link = /** @type {any} */ (event.target).closest("[data-connections-of], [data-whole]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  showOnly(link.dataset.connectionsOf).catch(complain);
}

if (holder) {
  document.addEventListener("click", follow);
  onClick("[data-tab-of]", (link) => showTab(link.dataset.tabOf));
  holder.addEventListener("submit", send);
  holder.addEventListener("change", (/** @type {any} */ { target }) => target.closest("[data-weights]")?.requestSubmit());
  const plan = throttled(refresh, BATCH_MS);
  onEvent((event) => {
    const isAbout = event.document_id === holder.dataset.document && event.state_after;
    if (isAbout || event.kind === "complete" || event.kind === "connection_judged") plan();
  });
  onLost(plan);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "c" || event.ctrlKey || event.metaKey || event.altKey || isField(event.target) || one("dialog[open]")) return;
    if (document.cookie.split("; ").includes("octavo_keys=off")) return;
    showTab("connections");
    if (document.body.classList.contains("about-closed") || !panel.offsetParent) togglePanel("about");
  });
}
