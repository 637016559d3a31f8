// Positions of words in the shown text.

import { all, make } from "../../shell/js/dom.js";

/** Words in different blocks are separate words. */
export const BLOCKS = "p, li, td, th, pre, blockquote, figcaption, h1, h2, h3, h4, h5, h6";

/** @param {string} text */
export const letters = (text) => text.replace(/[^\p{L}\p{N}]/gu, "");

/** The text nodes of a passage, without its margin. @param {Element} passage @returns {Text[]} */
export function textNodes(passage) {
  const walker = document.createTreeWalker(passage, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) {
    const node = /** @type {Text} */ (walker.currentNode);
    if (!node.parentElement?.closest(".margin, .moment, .hush")) found.push(node);
  }
  return found;
}

/** Text nodes from the beginning of a chunk to where a quote must end. @param {Element} root @param {string} chunk @param {number} length */
function nodesFrom(root, chunk, length) {
  const passages = all(".passage", root);
  const first = passages.findIndex((passage) => passage.dataset.chunk === chunk);
  const found = [];
  let beyond = 0;
  for (let at = first; at >= 0 && at < passages.length && beyond < length; at += 1) {
    found.push(...textNodes(passages[at]));
    if (passages[at].dataset.chunk !== chunk) beyond += passages[at].textContent.length;
  }
  return found;
}

/** The letters and digits of the nodes, and the place of each. @param {Text[]} nodes */
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

/**
 * Marks a quote in the text. Only its letters and digits are compared, because the text is shown without Markdown.
 * @param {Element} root @param {{chunk: string, quote: string, before?: string}} passage @param {Record<string, any>} attributes
 */
export function markQuote(root, { chunk, quote: written, before = "" }, attributes) {
  const quote = letters(written);
  const { text, places } = spell(nodesFrom(root, chunk, quote.length));
  const at = quote ? occurrence(text, quote, letters(before)) : -1;
  if (at < 0) return;
  /** @type {Map<Text, [number, number]>} */
  const parts = new Map();
  for (const [node, offset] of places.slice(at, at + quote.length)) parts.set(node, [parts.get(node)?.[0] ?? offset, offset + 1]);
  const [last, offset] = places[at + quote.length - 1];
  if (last.data[offset + 1] === written.at(-1)) parts.set(last, [parts.get(last)?.[0] ?? offset, offset + 2]);
  for (const [node, [start, end]] of parts) wrap(node, start, end, attributes);
}

/** @param {Text} node @param {number} start @param {number} end @param {Record<string, any>} attributes */
function wrap(node, start, end, attributes) {
  const range = document.createRange();
  range.setStart(node, start);
  range.setEnd(node, end);
  range.surroundContents(make("mark", attributes));
}

// Words that a person searches for ----------------------------------------------------------------------------------

/** @type {Record<string, string>} */
const SAME = { "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00ab": '"', "\u00bb": '"' };
const UNSEEN = /[\u0300-\u036f\u00ad]/g;

/** A letter without case and accents, as the server compares it. @param {string} letter */
function fold(letter) {
  if (letter < "\u0080") return letter.toLowerCase();
  if (/[\u2010-\u2014]/.test(letter)) return "-";
  return SAME[letter] ?? letter.normalize("NFD").replace(UNSEEN, "").toLowerCase();
}

/** @param {string} query */
export const foldWords = (query) => [...query.normalize("NFD")].map(fold).join("").split(/\s+/).filter(Boolean).join(" ");

/** The places of folded words in passages. @param {Element[]} passages @param {string} words @returns {Range[]} */
export function findRanges(passages, words) {
  /** @type {[Text, number][]} */
  const places = [];
  let text = "";
  /** @type {Element | null | undefined} */
  let block;
  for (const node of passages.flatMap(textNodes)) {
    const next = node.parentElement?.closest(BLOCKS);
    for (const [offset, letter] of [...(next === block ? "" : " "), ...node.data].entries()) {
      const at = next === block ? offset : Math.max(offset - 1, 0);
      const folded = /\s/.test(letter) ? (text.endsWith(" ") ? "" : " ") : fold(letter);
      text += folded;
      for (let unit = 0; unit < folded.length; unit += 1) places.push([node, at]);
    }
    block = next;
  }
  const found = [];
  for (let at = text.indexOf(words); words && at >= 0; at = text.indexOf(words, at + words.length)) {
    const [[first, start], [last, end]] = [places[at], places[at + words.length - 1]];
    const range = new Range();
    range.setStart(first, start);
    range.setEnd(last, Math.min(end + 1, last.length));
    found.push(range);
  }
  return found;
}
