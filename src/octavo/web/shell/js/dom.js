// Small helpers for the DOM, and for texts in the language of the page. English needs no catalogue: the texts are the keys.

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

/** @type {{ plural: (n: number) => number, texts: Record<string, string | string[]> } | undefined} set by locale/<language>.js */
const catalogue = /** @type {any} */ (globalThis).octavoTexts;

export const language = document.documentElement.lang || "en";

/** @param {string} text @param {Record<string, string | number>} values */
const fill = (text, values) => text.replace(/%\((\w+)\)s/g, (_, name) => String(values[name])).replaceAll("%%", "%");

/** A text with its values: t("Page %(page)s", { page: 3 }). @param {string} text @param {Record<string, string | number>} [values] */
export function t(text, values) {
  const found = catalogue?.texts[text];
  const translated = typeof found === "string" ? found : text;
  return values ? fill(translated, values) : translated;
}

/**
 * A text in the singular or plural that fits the number, which it names as %(number)s.
 * @param {string} singular @param {string} many @param {number} number @param {Record<string, string | number>} [values]
 */
export function plural(singular, many, number, values = {}) {
  const forms = catalogue?.texts[singular];
  const text = Array.isArray(forms) ? forms[catalogue?.plural(number) ?? 0] : number === 1 ? singular : many;
  return fill(text, { number: format(number), ...values });
}

/** 1,234 in the format of the language. @param {number} number */
export const format = (number) => number.toLocaleString(language);

/** 0.55 in the format of the language. @param {number} number */
export const decimal = (number) => number.toLocaleString(language, { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** 1.1 MB, 48 MB: the same as format_bytes on the server. @param {number} size */
export function bytes(size) {
  if (size < 1024) return t("%(size)s bytes", { size: format(size) });
  let unit = "";
  for (const next of ["KB", "MB", "GB"]) {
    if (size < 1024) break;
    size /= 1024;
    unit = next;
  }
  const digits = size < 10 ? 1 : 0;
  return `${size.toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false })} ${unit}`;
}

export const canWrite = () => !document.body.hasAttribute("data-read-only");
