// Highlights and notes: marks them in the text, and adds one for the selected text.

import { all, canWrite, isField, make, one, parse } from "../../shell/js/dom.js";
import { fetchPiece, request } from "../../shell/js/request.js";
import { throttled } from "../../shell/js/throttle.js";
import { complain } from "../../shell/js/toast.js";
import { togglePanel } from "./reader-panels.js";

const COLOURS = ["yellow", "green", "blue", "pink"];
const SETTLE_MS = 150;
const BLOCKS = "p, li, td, th, pre, blockquote, figcaption, h1, h2, h3, h4, h5, h6";

const holder = one("#highlights");
const leaves = one("#leaves");

// Marks in the text -----------------------------------------------------------------------------------------------

/** @param {string} text */
const letters = (text) => text.replace(/[^\p{L}\p{N}]/gu, "");

/** The text nodes of a passage, without its margin. @param {Element} passage @returns {Text[]} */
function textNodes(passage) {
  const walker = document.createTreeWalker(passage, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const node = /** @type {Text} */ (walker.currentNode);
    if (!node.parentElement?.closest(".margin, .moment, .hush")) found.push(node);
  }
  return found;
}

/** Text nodes from the beginning of a chunk to where the quote must end. @param {string} chunk @param {number} length */
function nodesFrom(chunk, length) {
  const passages = all(".passage", leaves);
  const first = passages.findIndex((passage) => passage.dataset.chunk === chunk);
  const found = [];
  let beyond = 0;
  for (let at = first; at >= 0 && at < passages.length && beyond < length; at += 1) {
    found.push(...textNodes(passages[at]));
    if (passages[at].dataset.chunk !== chunk) beyond += passages[at].textContent.length;
  }
  return found;
}

/** @param {Text[]} nodes the letters of the nodes, and the place of each letter */
function spell(nodes) {
  /** @type {[Text, number][]} */
  const places = [];
  let text = "";
  for (const node of nodes) {
    for (const { 0: letter, index } of node.data.matchAll(/[\p{L}\p{N}]/gu)) {
      text += letter;
      for (let unit = 0; unit < letter.length; unit += 1) places.push([node, index + unit]);
    }
  }
  return { text, places };
}

/** The occurrence with the most of the same text before it. @param {string} text @param {string} quote @param {string} before */
function occurrence(text, quote, before) {
  let [best, most] = [-1, -1];
  for (let at = text.indexOf(quote); at >= 0; at = text.indexOf(quote, at + 1)) {
    let same = 0;
    while (same < Math.min(at, before.length) && text[at - 1 - same] === before[before.length - 1 - same]) same += 1;
    if (same > most) [best, most] = [at, same];
  }
  return best;
}

/** @param {HTMLElement} item */
function mark(item) {
  const written = one("blockquote", item).textContent;
  const quote = letters(written);
  const { text, places } = spell(nodesFrom(item.dataset.chunk ?? "", quote.length));
  const at = quote ? occurrence(text, quote, letters(item.dataset.before ?? "")) : -1;
  if (at < 0) return;
  /** @type {Map<Text, [number, number]>} */
  const parts = new Map();
  for (const [node, offset] of places.slice(at, at + quote.length)) parts.set(node, [parts.get(node)?.[0] ?? offset, offset + 1]);
  const [last, offset] = places[at + quote.length - 1];
  if (last.data[offset + 1] === written.at(-1)) parts.set(last, [parts.get(last)?.[0] ?? offset, offset + 2]);
  for (const [node, [start, end]] of parts) wrap(node, start, end, item);
}

/** @param {Text} node @param {number} start @param {number} end @param {HTMLElement} item */
function wrap(node, start, end, item) {
  const note = one(".why", item)?.textContent;
  const range = document.createRange();
  range.setStart(node, start);
  range.setEnd(node, end);
  range.surroundContents(make("mark", { class: `${item.dataset.colour}${note ? " noted" : ""}`, "data-mark": item.dataset.highlight, title: note }));
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
    await refresh();
    one("#announcements").textContent = deletes ? "Highlight deleted." : "Highlight saved.";
    one(`[data-highlight="${form.dataset.of}"] summary, #highlights summary`)?.focus({ preventScroll: true });
  } catch (error) {
    complain(error);
  }
}

// Selected text ---------------------------------------------------------------------------------------------------

/** The selected text with its approximate position, or null. */
function selected() {
  const range = getSelection()?.rangeCount ? getSelection()?.getRangeAt(0) : null;
  if (!range || range.collapsed || !leaves.contains(range.commonAncestorContainer)) return null;
  let [quote, start] = ["", -1];
  /** @type {Element | null | undefined} */
  let block;
  for (const passage of all(".passage[data-chunk]", leaves).filter((each) => range.intersectsNode(each))) {
    let at = Number(passage.dataset.start);
    for (const node of textNodes(passage)) {
      const [from, to] = [node === range.startContainer ? range.startOffset : 0, node === range.endContainer ? range.endOffset : node.length];
      if (range.intersectsNode(node) && from < to) {
        const next = node.parentElement?.closest(BLOCKS);
        quote += (block && next !== block ? " " : "") + node.data.slice(from, to);
        if (start < 0) start = at + from;
        block = next;
      }
      at += node.length;
    }
  }
  return letters(quote) ? { quote, start } : null;
}

/** @param {string} colour @param {boolean} [edit] */
async function highlight(colour, edit) {
  const passage = selected();
  if (!passage) return;
  try {
    const made = await add({ ...passage, colour });
    getSelection()?.removeAllRanges();
    bar.hidden = true;
    await refresh();
    one("#announcements").textContent = "Highlighted.";
    if (edit) show(made.id, true);
  } catch (error) {
    complain(error);
  }
}

const bar = make(
  "div",
  { class: "mark-bar", role: "toolbar", "aria-label": "Highlight the selected text", hidden: true, mousedown: (/** @type {Event} */ event) => event.preventDefault() },
  ...COLOURS.map((colour) => make("button", { class: `dot ${colour}`, type: "button", title: `Highlight in ${colour}${colour === "yellow" ? " (h)" : ""}`, "aria-label": `Highlight in ${colour}`, click: () => highlight(colour) })),
  make("button", { class: "button plain", type: "button", title: "Note (Shift H)", click: () => highlight("yellow", true) }, "Note"),
);

function place() {
  if (bar.contains(document.activeElement)) return;
  bar.hidden = !selected();
  if (bar.hidden) return;
  const { left, top, bottom } = /** @type {Selection} */ (getSelection()).getRangeAt(0).getBoundingClientRect();
  const above = top - bar.offsetHeight - 8;
  bar.style.top = `${Math.min(above > 0 ? above : bottom + 8, innerHeight - bar.offsetHeight - 8)}px`;
  bar.style.left = `${Math.max(8, Math.min(left, innerWidth - bar.offsetWidth - 8))}px`;
}

/** @param {KeyboardEvent} event */
function press(event) {
  if (event.key === "Escape") bar.hidden = true;
  if (event.ctrlKey || event.metaKey || event.altKey || isField(event.target) || !selected()) return;
  if (document.cookie.split("; ").includes("octavo_keys=off")) return;
  if (event.key.toLowerCase() !== "h") return;
  event.preventDefault();
  highlight("yellow", event.shiftKey);
}

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
  if (canWrite()) {
    document.body.append(bar);
    document.addEventListener("selectionchange", throttled(async () => place(), SETTLE_MS));
    addEventListener("scroll", () => (bar.hidden = true), { capture: true, passive: true });
    document.addEventListener("keydown", press);
  }
}
