// The reading position: marks the current heading and page while scrolling, and moves between passages and pages.

import { all, canWrite, one, t } from "../../shell/js/dom.js";
import { request } from "../../shell/js/request.js";
import { throttled } from "../../shell/js/throttle.js";
import { toast } from "../../shell/js/toast.js";
import { closeDrawers } from "./reader-panels.js";
import { follow as followPage, markPassage, onPick } from "./reader-picture.js";

// The reading position is this share of the window from the top.
const LINE = 0.3;
const KEEP_MS = 2000;

/** @type {() => Element} */
let scroller;
let page = 0;
let waiting = false;

/** @param {() => Element} scrolls */
export function startPlace(scrolls) {
  scroller = scrolls;
  page = Number(one("[data-page-now]")?.textContent ?? 0);
  one("#leaves").addEventListener("click", pick);
  const markTarget = () => markPassage(one(".passage:is(.cited, :target)"));
  addEventListener("hashchange", markTarget);
  markTarget();
  for (const link of all("[data-heading]")) link.addEventListener("click", (/** @type {Event} */ event) => follow(event, link));
  // Captured, because scroll events of a column do not bubble.
  addEventListener("scroll", () => waiting || plan(), { capture: true, passive: true });
  onPick((passage) => {
    setCurrent(passage);
    passage.scrollIntoView({ block: "start" });
  });
  findHash();
  resume();
  plan();
  startKeeping();
}

/** Continues where the person stopped reading, unless the address names a place. */
function resume() {
  const { resume: chunk, resumePage: number, address } = one("#leaves").dataset;
  const target = chunk && !location.hash && document.getElementById(`c-${chunk}`);
  if (!target) return;
  target.scrollIntoView({ block: "start" });
  toast(number ? t("Continued on page %(page)s.", { page: number }) : t("Continued where you stopped."), { verb: t("Go to the beginning"), href: `${address}?at=0` });
}

/** Keeps the reading position on the server while the person scrolls. */
function startKeeping() {
  if (!canWrite()) return;
  const { address } = one("#leaves").dataset;
  let kept = placeNow();
  const keep = async () => {
    const start = placeNow();
    if (start === kept) return;
    kept = start;
    const options = { method: "PUT", keepalive: true, headers: { "content-type": "application/json" }, body: JSON.stringify({ start }) };
    await request(`/api/v1${address}/position`, options).catch(() => {});
  };
  addEventListener("scroll", throttled(keep, KEEP_MS), { capture: true, passive: true });
  addEventListener("pagehide", keep);
}

/** Where the passage at the top begins in the text; 0 at the beginning. */
function placeNow() {
  const top = scroller() === document.scrollingElement ? 60 : one("#text").getBoundingClientRect().top;
  const passages = all(".passage[id]");
  const first = passages.find((passage) => passage.getBoundingClientRect().bottom > top + 8);
  return first && (first !== passages[0] || one("[data-earlier]")) ? Number(first.dataset.start) : 0;
}

function plan() {
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    locate();
  });
}

/** Marks the current page and heading. */
export function locate() {
  const line = innerHeight * LINE;
  const leaves = all(".leaf");
  let [low, high] = [0, leaves.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (leaves[middle].getBoundingClientRect().top <= line) low = middle + 1;
    else high = middle;
  }
  const at = Math.max(low - 1, 0);
  if (leaves[at]?.dataset.page) setPage(Number(leaves[at].dataset.page));
  setHeading(headingAt(leaves, at, line));
}

/** The last heading above the line. @param {any[]} leaves @param {number} at @param {number} line */
function headingAt(leaves, at, line) {
  const near = all(".passage > [id^='h-']", leaves[at]).filter((heading) => heading.getBoundingClientRect().top <= line);
  if (near.length) return near.at(-1).id;
  for (let before = at - 1; before >= 0; before -= 1) {
    const last = all(".passage > [id^='h-']", leaves[before]).at(-1);
    if (last) return last.id;
  }
  return "";
}

/** @param {string} id */
function setHeading(id) {
  const links = all("[data-heading]");
  const now = links.findIndex((link) => link.hasAttribute("aria-current"));
  const next = id ? links.findIndex((link) => link.dataset.heading === id) : beforeAll(links);
  if (next === now || (id && next < 0)) return;
  links[now]?.removeAttribute("aria-current");
  links[next]?.setAttribute("aria-current", "true");
  keepInSight(links[next]);
}

/** The heading before the first loaded one. @param {any[]} links */
function beforeAll(links) {
  const first = one(".passage > [id^='h-']")?.id;
  return first ? links.findIndex((link) => link.dataset.heading === first) - 1 : links.findIndex((link) => link.hasAttribute("aria-current"));
}

/** Scrolls only the outline. @param {HTMLElement | undefined} link */
function keepInSight(link) {
  const panel = link?.closest(".outline-scroll");
  if (!link || !panel) return;
  const [inner, outer] = [link.getBoundingClientRect(), panel.getBoundingClientRect()];
  if (inner.top < outer.top + 16) panel.scrollBy(0, inner.top - outer.top - 16);
  else if (inner.bottom > outer.bottom - 16) panel.scrollBy(0, inner.bottom - outer.bottom + 16);
}

/** @param {number} number */
function setPage(number) {
  if (page === number) return;
  page = number;
  for (const place of all("[data-page-now]")) place.textContent = String(page);
  const field = one("#page-number");
  if (field && field !== document.activeElement) field.value = String(page);
  followPage(page);
}

/** Scrolls to a heading that is already loaded instead of loading it again. @param {Event} event @param {HTMLElement} link */
function follow(event, link) {
  const target = document.getElementById(link.dataset.heading ?? "");
  if (!target) return;
  event.preventDefault();
  closeDrawers();
  location.hash = target.id;
}

/** Handles a link to a page without its anchor, or to a passage that is not loaded. */
function findHash() {
  const asked = new URLSearchParams(location.search).get("p");
  if (asked && !location.hash) document.getElementById(`p-${asked}`)?.scrollIntoView({ block: "start" });
  const passage = /^#c-([0-9a-f-]{36})$/.exec(location.hash)?.[1];
  if (!passage || document.getElementById(`c-${passage}`)) return;
  const query = new URLSearchParams(location.search);
  if (query.get("c") === passage) return;
  location.replace(`${location.pathname}?c=${passage}${location.hash}`);
}

/** @param {1 | -1} step */
export function movePassage(step) {
  const passages = all(".passage[id]");
  const top = scroller() === document.scrollingElement ? 60 : one("#text").getBoundingClientRect().top;
  let now = passages.findIndex((passage) => passage.classList.contains("current"));
  if (now < 0) {
    const first = passages.findIndex((passage) => passage.getBoundingClientRect().bottom > top + 8);
    now = step > 0 ? first - 1 : first;
  }
  const next = passages[now + step];
  if (!next) return;
  setCurrent(next);
  next.scrollIntoView({ block: "start" });
}

/** @param {HTMLElement} passage */
function setCurrent(passage) {
  one(".passage.current")?.classList.remove("current");
  passage.classList.add("current");
  markPassage(passage);
}

/** Shows a clicked passage on its page, unless text is selected or a link is followed. @param {Event} event */
function pick({ target }) {
  const passage = /** @type {any} */ (target).closest(".passage[data-boxes]");
  if (passage && !(/** @type {Element} */ (target).closest("a")) && getSelection()?.isCollapsed) setCurrent(passage);
}

/** @param {1 | -1} step */
export function movePage(step) {
  const last = Number(one("#page-number")?.max ?? 0);
  const wanted = page + step;
  if (!page || wanted < 1 || wanted > last) return;
  const mark = document.getElementById(`p-${wanted}`);
  // Immediately, so that the next key starts from here.
  setPage(wanted);
  if (mark) mark.scrollIntoView({ block: "start" });
  else location.assign(`${location.pathname}?p=${wanted}#p-${wanted}`);
}
