// Find in the document: searches the whole stored text, marks the matches in the loaded part, and moves between them.

import { all, format, isField, one, t } from "../../shell/js/dom.js";
import { request } from "../../shell/js/request.js";
import { complain } from "../../shell/js/toast.js";
import { findRanges, foldWords } from "./reader-text.js";

const SETTLE_MS = 250;
const PAGE = 500;
const MOST = 2000;

/** @typedef {{start: number, chunk_id: string | null}} Match */

const bar = one("#find-bar");
const field = one("#find-words");
const leaves = one("#leaves");
/** @type {Match[]} */
let matches = [];
let total = 0;
let now = -1;
let asked = 0;
let timer = 0;
/** @type {Map<string, Range[]>} ranges of the words in each loaded chunk */
let ranges = new Map();
/** @type {Range | null} the current match, if it is loaded */
let current = null;

/** @param {string} words @returns {Promise<{items: Match[], total: number}>} */
async function fetchMatches(words) {
  /** @type {Match[]} */
  const items = [];
  let cursor = "";
  let all = 0;
  do {
    const query = new URLSearchParams({ q: words, limit: String(PAGE), cursor });
    const page = await request(`/api/v1/documents/${bar.dataset.document}/find?${query}`);
    items.push(...page.items);
    [cursor, all] = [page.next_cursor, page.total];
  } while (cursor && items.length < MOST);
  return { items, total: all };
}

/** Finds the words and goes to a match. @param {(found: Match[]) => number} choose */
async function search(choose) {
  clearTimeout(timer);
  const number = ++asked;
  const words = field.value.trim();
  const found = words ? await fetchMatches(words) : { items: [], total: 0 };
  if (number !== asked) return;
  ({ items: matches, total } = found);
  mark();
  [now, current] = [-1, null];
  if (matches.length) go(choose(matches));
  else say();
}

/** Marks all matches in the loaded text, without changing it. */
function mark() {
  const words = foldWords(field.value);
  /** @type {Map<string, Element[]>} */
  const chunks = new Map();
  if (words && !bar.hidden) for (const passage of all(".passage[data-chunk]", leaves)) chunks.set(passage.dataset.chunk, [...(chunks.get(passage.dataset.chunk) ?? []), passage]);
  ranges = new Map([...chunks].map(([chunk, passages]) => [chunk, findRanges(passages, words)]));
  if (!CSS.highlights) return;
  CSS.highlights.delete("found-now");
  CSS.highlights.set("found", new Highlight(...[...ranges.values()].flat()));
}

function say() {
  const words = field.value.trim();
  one("#find-count").textContent = !words ? "" : !total ? t("No matches") : t("%(done)s of %(total)s", { done: format(now + 1), total: format(total) });
}

/** Goes to a match. If it is not loaded, the page is opened there. @param {number} at */
function go(at) {
  now = (at + matches.length) % matches.length;
  say();
  const { chunk_id: chunk, start } = matches[now];
  const shown = chunk && (one(`.passage[data-chunk="${chunk}"]`, leaves) ?? document.getElementById(`c-${chunk}`));
  if (!shown) return location.assign(`${location.pathname}?${new URLSearchParams({ find: field.value.trim(), c: chunk ?? "", at: String(start) })}`);
  const before = matches.slice(0, now).filter((match) => match.chunk_id === chunk).length;
  const range = chunk && ranges.get(chunk)?.[before];
  (range ? range.startContainer.parentElement : shown).scrollIntoView({ block: "center" });
  current = range || null;
  if (range && CSS.highlights) CSS.highlights.set("found-now", new Highlight(range));
}

/** The first match at or after a place in the text. @param {number} place */
const nearest = (place) => (/** @type {Match[]} */ found) => Math.max(found.findIndex((match) => match.start >= place), 0);

/** The beginning of the first visible passage. */
function place() {
  const seen = all(".passage[data-start]", leaves).find((passage) => passage.getBoundingClientRect().bottom > innerHeight * 0.2);
  return Number(seen?.dataset.start ?? 0);
}

function open() {
  bar.hidden = false;
  field.focus();
  field.select();
  mark();
}

/** Selects the current match, as browsers do, so that it can be copied or highlighted. */
function close() {
  bar.hidden = true;
  mark();
  one("#text").focus({ preventScroll: true });
  if (current) getSelection()?.setBaseAndExtent(current.startContainer, current.startOffset, current.endContainer, current.endOffset);
  const query = new URLSearchParams(location.search);
  query.delete("find");
  history.replaceState(history.state, "", `${location.pathname}${query.size ? `?${query}` : ""}${location.hash}`);
}

/** Ctrl F in the field opens the search of the browser. @param {KeyboardEvent} event */
function press(event) {
  if (event.defaultPrevented || event.altKey || one("dialog[open]")) return;
  const isCtrlF = (event.ctrlKey || event.metaKey) && !event.shiftKey && event.key.toLowerCase() === "f";
  const isSlash = event.key === "/" && !event.ctrlKey && !event.metaKey && !isField(event.target) && !document.cookie.split("; ").includes("octavo_keys=off");
  if ((!isCtrlF && !isSlash) || document.activeElement === field) return;
  event.preventDefault();
  open();
}

/** @param {KeyboardEvent} event */
function type(event) {
  if (event.key === "Escape") {
    event.preventDefault();
    event.stopPropagation();
    close();
  } else if (event.key === "Enter" && event.shiftKey) {
    event.preventDefault();
    step(-1);
  }
}

/** @param {number} by */
function step(by) {
  if (timer || now < 0) search(nearest(place())).catch(complain);
  else if (matches.length) go(now + by);
  timer = 0;
}

function start() {
  for (const button of all("[data-find-step]", bar)) {
    button.hidden = false;
    button.addEventListener("click", () => step(Number(button.dataset.findStep)));
  }
  one("[data-find-all]", bar).hidden = true;
  bar.addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    step(1);
  });
  field.addEventListener("keydown", type);
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = 0;
      search(nearest(place())).catch(complain);
    }, SETTLE_MS);
  });
  for (const [selector, act] of /** @type {[string, () => void][]} */ ([["[data-find]", open], ["[data-find-close]", close]])) {
    one(selector)?.addEventListener("click", (/** @type {Event} */ event) => {
      event.preventDefault();
      act();
    });
  }
  document.addEventListener("keydown", press);
  new MutationObserver(mark).observe(leaves, { childList: true });
  one("#found")?.remove();
  if (!bar.hidden) field.focus({ preventScroll: true });
  if (!bar.hidden && field.value) search(nearest(Number(new URLSearchParams(location.search).get("at") ?? 0))).catch(complain);
}

if (bar && leaves) start();
