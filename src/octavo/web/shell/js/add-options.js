// The options of the add box: title, source, what happens with duplicates, and how the text is read. They apply to files,
// links and text, however they are added on this page.

import { one } from "./dom.js";

const NAMES = ["title", "source", "duplicates", "extraction"];

/** @param {string} name @returns {HTMLInputElement | HTMLSelectElement | null} */
const field = (name) => one(`[data-add-box] [name="${name}"]`);

/** The options that are set. A title is for one document only. @param {number} count @returns {Record<string, string>} */
export function readOptions(count) {
  const given = NAMES.map((name) => [name, field(name)?.value.trim() ?? ""]);
  return Object.fromEntries(given.filter(([name, value]) => value && (name !== "title" || count === 1)));
}

/** Title and source belong to what was just added; the other options stay. */
export function clearOptions() {
  for (const name of ["title", "source"]) {
    const shown = field(name);
    if (shown) shown.value = "";
  }
}
