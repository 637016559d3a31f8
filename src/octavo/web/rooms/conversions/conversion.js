// The review of a conversion: the selected value is marked on its page, and keys move from value to value.

import { fetchPiece, request } from "../../shell/js/request.js";
import { all, isField, one, parse, t } from "../../shell/js/dom.js";
import { onEvent, onLost } from "../../shell/js/live.js";
import { announce, complain, toast } from "../../shell/js/toast.js";

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
  point(false);
  offerPointing();
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
  if (target.closest("[data-point]")) return point(!review.classList.contains("pointing"));
  if (review.classList.contains("pointing") && target.closest(".cv-leaf")) return;
  const mark = target.closest("[data-mark]");
  const link = mark ? linkOf(/** @type {HTMLElement} */ (mark).dataset.mark ?? "") : target.closest("a[data-field], a[data-turn], a[data-follow]");
  if (!link) return;
  event.preventDefault();
  if (link.getAttribute("aria-disabled") !== "true") go(/** @type {HTMLAnchorElement} */ (link));
});

// Pointing at the right value on the page ---------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";
const DRAG = 4;
/** @type {{x: number, y: number} | null} where the pointer went down, in points of the page */
let start = null;
/** @type {Map<string, Promise<{text: string, box: number[]}[]>>} the words of each page */
const words = new Map();

/** @param {boolean} on */
function point(on) {
  review.classList.toggle("pointing", on);
  one("[data-point]", review)?.setAttribute("aria-pressed", String(on));
  if (on) announce(t("Click the correct value on the page, or draw a box around it."));
}

/** The position of an event on the page, in points. @param {PointerEvent} event */
function position(event) {
  const boxes = one(".boxes", review);
  const area = boxes.getBoundingClientRect();
  const { width, height } = boxes.viewBox.baseVal;
  return { x: ((event.clientX - area.left) / area.width) * width, y: ((event.clientY - area.top) / area.height) * height };
}

/** @param {number[]} box */
function draw(box) {
  const boxes = one(".boxes", review);
  const mark = one(".pointed", boxes) ?? boxes.appendChild(document.createElementNS(SVG, "rect"));
  mark.setAttribute("class", "pointed");
  const [left, top, right, bottom] = box;
  for (const [name, value] of Object.entries({ x: left, y: top, width: right - left, height: bottom - top })) mark.setAttribute(name, value.toFixed(1));
}

/** @param {string} page */
function wordsOf(page) {
  if (!words.has(page)) words.set(page, request(`/api/v1/conversions/${conversion}/words?page=${page}`).then((/** @type {any} */ found) => found.items));
  return /** @type {Promise<{text: string, box: number[]}[]>} */ (words.get(page));
}

/** Fills in the form with what the person pointed at. @param {number[]} box @param {boolean} isClick */
async function take([left, top, right, bottom], isClick) {
  const page = one(".cv-sheet", review).dataset.page;
  try {
    const found = (await wordsOf(page)).filter(({ box: [l, t, r, b] }) =>
      isClick ? l <= right && r >= left && t <= bottom && b >= top : (l + r) / 2 >= left && (l + r) / 2 <= right && (t + b) / 2 >= top && (t + b) / 2 <= bottom,
    );
    if (isClick && !found.length) return toast(t("There is no text here. Draw a box around the value instead."));
    const sides = isClick ? found[0].box : [left, top, right, bottom];
    const text = (isClick ? found.slice(0, 1) : found).map((word) => word.text).join(" ");
    draw(sides);
    one("#where").value = page;
    one("#box").value = sides.map((side) => side.toFixed(1)).join(" ");
    if (text) one("#value").value = text;
    point(false);
    one("#value").focus();
  } catch (error) {
    complain(error);
  }
}

review.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
  if (!review.classList.contains("pointing") || !(/** @type {Element} */ (event.target).closest(".cv-leaf"))) return;
  event.preventDefault();
  start = position(event);
});
review.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => start && draw(span(start, position(event))));
addEventListener("pointerup", (/** @type {PointerEvent} */ event) => {
  if (!start) return;
  const box = span(start, position(event));
  start = null;
  take(box, box[2] - box[0] < DRAG && box[3] - box[1] < DRAG);
});

/** @param {{x: number, y: number}} a @param {{x: number, y: number}} b */
const span = (a, b) => [Math.min(a.x, b.x), Math.min(a.y, b.y), Math.max(a.x, b.x), Math.max(a.y, b.y)];

/** Shows the button, which needs this script. */
function offerPointing() {
  const button = one("[data-point]", review);
  if (button) button.hidden = false;
}

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
  // Enter accepts the selected value. On any other value, Enter follows its link, which selects it.
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
offerPointing();
showMark();
