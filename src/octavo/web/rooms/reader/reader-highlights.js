// Highlights and notes: marks them in the text, and adds one for the selected text. The selected text can also be copied
// with its source.

import { all, canWrite, isField, make, one, parse, t } from "../../shell/js/dom.js";
import { fetchPiece, request } from "../../shell/js/request.js";
import { throttled } from "../../shell/js/throttle.js";
import { complain, toast, undoable } from "../../shell/js/toast.js";
import { togglePanel } from "./reader-panels.js";
import { BLOCKS, letters, markQuote, textNodes } from "./reader-text.js";

const COLOURS = ["yellow", "green", "blue", "pink"];
/** @type {Record<string, string>} */
const IN_COLOUR = { yellow: t("Highlight in yellow"), green: t("Highlight in green"), blue: t("Highlight in blue"), pink: t("Highlight in pink") };
const SETTLE_MS = 150;
// How much text before a selection is sent. It tells apart passages with the same words.
const CONTEXT = 80;

const holder = one("#highlights");
const leaves = one("#leaves");

// Marks in the text -----------------------------------------------------------------------------------------------

/** @param {HTMLElement} item */
function mark(item) {
  const note = one(".why", item)?.textContent;
  const passage = { chunk: item.dataset.chunk ?? "", quote: one("blockquote", item).textContent, before: item.dataset.before };
  markQuote(leaves, passage, { class: `${item.dataset.colour}${note ? " noted" : ""}`, "data-mark": item.dataset.highlight, title: note });
}

function paint() {
  for (const shown of all("mark[data-mark]", leaves)) shown.replaceWith(...shown.childNodes);
  leaves.normalize();
  for (const item of all("[data-highlight]", holder)) mark(item);
}

// The panel -------------------------------------------------------------------------------------------------------

async function refresh() {
  const list = one("#highlights-list", parse(await fetchPiece(`/documents/${holder.dataset.document}/highlights`)));
  one("#highlights-list", holder).replaceWith(document.adoptNode(list));
  one("[data-highlight-count]").textContent = Number(list.dataset.count) || "";
  paint();
}

/** Opens the panel at a highlight. @param {string} id @param {boolean} [edit] */
function show(id, edit) {
  one('#about [data-tab-of="highlights"]').click();
  if (document.body.classList.contains("about-closed") || !one("#about").offsetParent) togglePanel("about");
  const item = one(`[data-highlight="${id}"]`, holder);
  item?.scrollIntoView({ block: "nearest" });
  const details = item && one("details", item);
  if (details && edit) {
    details.open = true;
    one("textarea", details).focus();
  }
}

/** @param {string} path @param {string} method @param {object} [body] */
const call = (path, method, body) => request(`/api/v1${path}`, { method, headers: { "content-type": "application/json" }, body: body && JSON.stringify(body) });

/** @param {object} passage */
const add = (passage) => call(`/documents/${holder.dataset.document}/highlights`, "POST", passage);

/** Offers to add a deleted highlight again. A lost one cannot be added: the text does not have its words. @param {HTMLElement} item */
function offerUndo(item) {
  const { chunk, colour, before } = item.dataset;
  const passage = { quote: one("blockquote", item).textContent, text_before: before, colour, note: one(".why", item)?.textContent ?? "" };
  if (chunk) undoable(t("Highlight deleted."), () => add(passage).then(refresh).catch(complain));
}

/** @param {SubmitEvent} event */
async function send(event) {
  const form = /** @type {HTMLFormElement} */ (event.target);
  event.preventDefault();
  const values = Object.fromEntries(new FormData(form));
  const path = `/highlights/${form.dataset.of}`;
  const deletes = /** @type {any} */ (event.submitter)?.value === "delete";
  try {
    if (deletes) await call(path, "DELETE");
    else await (form.dataset.of ? call(path, "PATCH", values) : add(values));
    if (deletes) offerUndo(/** @type {HTMLElement} */ (form.closest("[data-highlight]")));
    await refresh();
    one("#announcements").textContent = deletes ? t("Highlight deleted.") : t("Highlight saved.");
    one(`[data-highlight="${form.dataset.of}"] summary, #highlights summary`)?.focus({ preventScroll: true });
  } catch (error) {
    complain(error);
  }
}

// Selected text ---------------------------------------------------------------------------------------------------

/** The selected text with the text before it and its passage; null if no text is selected. */
function selected() {
  const range = getSelection()?.rangeCount ? getSelection()?.getRangeAt(0) : null;
  return range && !range.collapsed && leaves.contains(range.commonAncestorContainer) ? read(range) : null;
}

/** The selected text, else the passage that was reached with a key. */
function chosen() {
  const passage = one(".passage.current", leaves);
  const range = document.createRange();
  if (passage) range.selectNodeContents(passage);
  return selected() ?? (passage && read(range));
}

/** @param {Range} range */
function read(range) {
  const passages = all(".passage[data-chunk]", leaves).filter((each) => range.intersectsNode(each));
  const [quote, before] = [range, rangeBefore(range, passages[0])].map((part) => textOf(part, passages));
  return letters(quote) ? { quote, before: before.slice(-CONTEXT), passage: passages[0] } : null;
}

/** From the beginning of a passage to a range. @param {Range} range @param {Element | undefined} passage */
function rangeBefore(range, passage) {
  const before = document.createRange();
  before.setStart(passage ?? leaves, 0);
  if (before.comparePoint(range.startContainer, range.startOffset) >= 0) before.setEnd(range.startContainer, range.startOffset);
  return before;
}

/** The text in a range. Blocks are separated by spaces. @param {Range} range @param {Element[]} passages */
function textOf(range, passages) {
  let text = "";
  /** @type {Element | null | undefined} */
  let block;
  for (const node of passages.flatMap(textNodes).filter((each) => range.intersectsNode(each))) {
    const [from, to] = [node === range.startContainer ? range.startOffset : 0, node === range.endContainer ? range.endOffset : node.length];
    if (from >= to) continue;
    const next = node.parentElement?.closest(BLOCKS);
    text += (block && next !== block ? " " : "") + node.data.slice(from, to);
    block = next;
  }
  return text;
}

/** Copies the chosen text with the title, the page and a link. */
async function copy() {
  const found = chosen();
  if (!found) return;
  const { chunk } = found.passage.dataset;
  const page = found.passage.closest(".leaf")?.dataset.page;
  const address = `${location.origin}/documents/${holder.dataset.document}?c=${chunk}#c-${chunk}`;
  const source = `${one(".reader-bar h1").textContent}${page ? `, ${t("p. %(page)s", { page })}` : ""}. ${address}`;
  await navigator.clipboard.writeText(`\u201c${found.quote.replace(/\s+/g, " ").trim()}\u201d\n${source}`);
  bar.hidden = true;
  toast(t("Copied with its source."));
}

/** @param {string} colour @param {boolean} [edit] */
async function highlight(colour, edit) {
  const found = chosen();
  if (!found) return;
  try {
    const made = await add({ quote: found.quote, text_before: found.before, start: Number(found.passage.dataset.start), colour });
    getSelection()?.removeAllRanges();
    bar.hidden = true;
    await refresh();
    one("#announcements").textContent = t("Highlighted.");
    if (edit) show(made.id, true);
  } catch (error) {
    complain(error);
  }
}

/** @param {string} colour */
const dot = (colour) => make("button", { class: `dot ${colour}`, type: "button", title: `${IN_COLOUR[colour]}${colour === "yellow" ? " (h)" : ""}`, "aria-label": IN_COLOUR[colour], click: () => highlight(colour) });
/** @param {string} word @param {string} title @param {() => void} click */
const button = (word, title, click) => make("button", { class: "button plain", type: "button", title, click }, word);
const bar = make(
  "div",
  { class: "mark-bar", role: "toolbar", "aria-label": t("Selected text"), hidden: true, mousedown: (/** @type {Event} */ event) => event.preventDefault(), keydown: moveInBar },
  ...(canWrite() ? [...COLOURS.map(dot), button(t("Note"), t("Note (Shift H)"), () => highlight("yellow", true))] : []),
  ...(navigator.clipboard ? [button(t("Copy"), t("Copy with source (y)"), () => copy().catch(complain))] : []),
);

/** Arrow keys move between the buttons, as in every toolbar. @param {KeyboardEvent} event */
function moveInBar(event) {
  const buttons = all("button", bar);
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step) buttons.at((buttons.indexOf(document.activeElement) + step) % buttons.length).focus();
  if (event.key !== "Escape") return;
  bar.hidden = true;
  one("#text").focus({ preventScroll: true });
}

function place() {
  if (bar.contains(document.activeElement)) return;
  bar.hidden = !selected();
  if (bar.hidden) return;
  const { left, top, bottom } = /** @type {Selection} */ (getSelection()).getRangeAt(0).getBoundingClientRect();
  const above = top - bar.offsetHeight - 8;
  bar.style.top = `${Math.min(above > 0 ? above : bottom + 8, innerHeight - bar.offsetHeight - 8)}px`;
  bar.style.left = `${Math.max(8, Math.min(left, innerWidth - bar.offsetWidth - 8))}px`;
}

/** @type {Record<string, () => void>} */
const KEYS = {
  ...(canWrite() ? { h: () => highlight("yellow"), H: () => highlight("yellow", true) } : {}),
  ...(navigator.clipboard ? { y: () => copy().catch(complain) } : {}),
};

/** @param {KeyboardEvent} event */
function press(event) {
  if (event.key === "Escape") bar.hidden = true;
  if (event.ctrlKey || event.metaKey || event.altKey || isField(event.target) || bar.contains(/** @type {Node} */ (event.target))) return;
  const toBar = event.key === "Tab" && !event.shiftKey && !bar.hidden;
  const act = toBar ? () => one("button", bar).focus() : areOff() ? undefined : KEYS[event.key];
  if (!act || !(toBar ? selected() : chosen())) return;
  event.preventDefault();
  act();
}

const areOff = () => document.cookie.split("; ").includes("octavo_keys=off");

if (holder && leaves) {
  paint();
  new MutationObserver(paint).observe(leaves, { childList: true });
  holder.addEventListener("submit", send);
  document.addEventListener("click", (event) => {
    const target = /** @type {Element} */ (event.target);
    const [shown, link] = [target.closest("mark[data-mark]"), target.closest("[data-to-mark]")];
    if (shown && getSelection()?.isCollapsed) show(shown.getAttribute("data-mark") ?? "");
    const wanted = link && one(`mark[data-mark="${link.getAttribute("data-to-mark")}"]`, leaves);
    if (!wanted) return;
    event.preventDefault();
    wanted.scrollIntoView({ block: "center" });
  });
  if (bar.children.length) {
    document.body.append(bar);
    document.addEventListener("selectionchange", throttled(async () => place(), SETTLE_MS));
    addEventListener("scroll", () => (bar.hidden = true), { capture: true, passive: true });
    document.addEventListener("keydown", press);
  }
}
