// Small DOM helpers.

const SPRITE = new URL("../icons.svg", import.meta.url).pathname;
const SVG = "http://www.w3.org/2000/svg";

/**
 * An element with attributes and children; functions become listeners, null and false are skipped.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | null)} children
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** @param {string} name one of icons.svg */
export function icon(name) {
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("class", "icon");
  picture.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `${SPRITE}#${name}`);
  picture.append(use);
  return picture;
}

/** The first match, or null. @param {string} selector @param {ParentNode} [within] @returns {any} */
export const one = (selector, within = document) => within.querySelector(selector);

/** All matches. @param {string} selector @param {ParentNode} [within] @returns {any[]} */
export const all = (selector, within = document) => [...within.querySelectorAll(selector)];

/** Our HTML as elements, without running scripts. @param {string} html */
export function parse(html) {
  return new DOMParser().parseFromString(html, "text/html").body;
}

/** Whether typed letters go into a field. @param {EventTarget | null} target */
export function isField(target) {
  return target instanceof HTMLElement && (target.isContentEditable || target.matches("textarea, select, input:not([type=checkbox]):not([type=radio]):not([type=button]):not([type=submit])"));
}

/** 1.1 MB, 48 MB: the same as format_bytes on the server. @param {number} size */
export function bytes(size) {
  let unit = "bytes";
  for (const next of ["KB", "MB", "GB"]) {
    if (size < 1024) break;
    size /= 1024;
    unit = next;
  }
  return `${unit !== "bytes" && size < 10 ? size.toFixed(1) : Math.round(size)} ${unit}`;
}

/** @param {number} number @param {string} word */
export const count = (number, word) => `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;

export const canWrite = () => !document.body.hasAttribute("data-read-only");
