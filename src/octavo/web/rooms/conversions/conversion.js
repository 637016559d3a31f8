// The review of a conversion: the selected value is marked on its page, and keys move from value to value.

import { fetchPiece } from "../../shell/js/request.js";
import { all, isField, one, parse } from "../../shell/js/dom.js";
import { onEvent, onLost } from "../../shell/js/live.js";
import { complain } from "../../shell/js/toast.js";

const PLACES = ["#cv-head", "#cv-side"];
const review = one("#review");
const { conversion } = review.dataset;
const areOff = () => document.cookie.split("; ").includes("octavo_keys=off");
/** @type {{href: string, focus?: string} | null} the request that is not shown yet */
let asking = null;

/** @param {string} href @param {string} [focus] selector of the element to focus */
async function look(href, focus) {
  const wanted = (asking = { href, focus });
  const address = new URL(href, location.href);
  try {
    const fresh = parse(await fetchPiece(`/conversions/${conversion}/pieces${address.search}`));
    if (wanted !== asking) return; // a newer request replaced this one
    asking = null;
    if (!focus && isField(document.activeElement)) return; // somebody started typing
    show(fresh);
    history.replaceState(null, "", address.pathname + address.search);
    if (focus) one(focus, review)?.focus({ preventScroll: true });
    one("#field")?.scrollIntoView({ block: "nearest" });
    showMark();
  } catch (error) {
    if (wanted === asking) asking = null;
    complain(error);
  }
}

/** @param {HTMLElement} fresh */
function show(fresh) {
  for (const place of PLACES) {
    const [here, now] = [one(place), one(place, fresh)];
    here.dataset.status = now.dataset.status ?? "";
    here.replaceChildren(...now.childNodes);
  }
  review.classList.toggle("bare", !one("#cv-side .tabs"));
  showPage(one("#cv-page"), one("#cv-page", fresh));
}

/** Keeps a loaded picture, so that nothing flickers. @param {HTMLElement} here @param {HTMLElement} now */
function showPage(here, now) {
  const [image, next] = [one("img", here), one("img", now)];
  if (!image || !next) return here.replaceChildren(...now.childNodes);
  for (const name of ["src", "alt", "width", "height"]) {
    const value = next.getAttribute(name);
    if (image.getAttribute(name) !== value) image.setAttribute(name, value);
  }
  one(".cv-sheet", here).dataset.page = one(".cv-sheet", now).dataset.page;
  for (const part of [".boxes", ".cv-pages"]) one(part, here).replaceWith(one(part, now));
}

/** Scrolls the picture to the mark, but not the page. */
function showMark() {
  const [sheet, mark] = [one(".cv-sheet"), one(".boxes .current")];
  if (!sheet || !mark) return;
  const [outer, inner] = [sheet.getBoundingClientRect(), mark.getBoundingClientRect()];
  if (inner.top < outer.top || inner.bottom > outer.bottom) sheet.scrollTop += inner.top - outer.top - outer.height / 3;
  if (inner.left < outer.left || inner.right > outer.right) sheet.scrollLeft += inner.left - outer.left - outer.width / 3;
}

review.addEventListener("click", (/** @type {MouseEvent} */ event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  const target = /** @type {Element} */ (event.target);
  const mark = target.closest("[data-mark]");
  const link = mark ? linkOf(/** @type {HTMLElement} */ (mark).dataset.mark ?? "") : target.closest("a[data-field], a[data-turn], a[data-follow]");
  if (!link) return;
  event.preventDefault();
  if (link.getAttribute("aria-disabled") !== "true") go(/** @type {HTMLAnchorElement} */ (link));
});

/** @param {string} path */
const linkOf = (path) => all("a[data-field]", review).find((link) => link.dataset.field === path);

/** @param {HTMLAnchorElement} link */
function go(link) {
  const label = link.getAttribute("aria-label");
  look(link.href, "turn" in link.dataset ? `a[aria-label="${label}"]` : "a[data-field][aria-current]");
}

// Keys --------------------------------------------------------------------------------------------------------------

/** @param {number} by */
function move(by) {
  const links = all("a[data-field]", review);
  const at = links.findIndex((link) => link.hasAttribute("aria-current"));
  const next = links[at < 0 ? 0 : at + by];
  if (next) go(next);
}

/** @type {Record<string, () => unknown>} */
const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  f: () => one("#next-unverified") && go(one("#next-unverified")),
  e: () => one("#value")?.select(),
  z: () => one("#undo")?.requestSubmit(),
};

review.ownerDocument.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isField(event.target) || areOff() || one("dialog[open]")) return;
  const target = /** @type {Element} */ (event.target);
  // Enter accepts the selected value; on any other value it selects it, as a link does.
  const accepts = event.key === "Enter" && target.matches("a[data-field][aria-current]") && one(".correct", review);
  if (!accepts && !KEYS[event.key]) return;
  event.preventDefault();
  if (accepts) one(".correct", review).requestSubmit();
  else KEYS[event.key]();
});

// Live updates --------------------------------------------------------------------------------------------------------

function refresh() {
  if (!isField(document.activeElement) && !document.hidden) look(asking?.href ?? location.href, asking?.focus);
}

onEvent((event) => event.process_id === conversion && refresh());
onLost(refresh);
showMark();
