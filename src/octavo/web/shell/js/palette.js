// Ctrl K: finds pages, actions and documents; an ARIA combobox.

import { all, icon, make, one, t } from "./dom.js";
import { request } from "./request.js";
import { openDialog } from "./dialog.js";

const ASK_MS = 150;
const MOST = 8;

/** @typedef {{label: string, hint: string, glyph: string, go: () => void}} Choice */

/** @type {HTMLDialogElement | null} */
let dialog = null;

export function openPalette() {
  if (dialog) return dialog.close();
  const options = make("ul", { id: "palette-options", role: "listbox", "aria-label": t("Matches") });
  const input = /** @type {HTMLInputElement} */ (
    make("input", {
      class: "input",
      type: "search",
      role: "combobox",
      "aria-expanded": "true",
      "aria-controls": "palette-options",
      "aria-autocomplete": "list",
      "aria-label": t("Find a document, a page or an action"),
      placeholder: t("Find a document, a page or an action"),
      autocomplete: "off",
      spellcheck: "false",
      autofocus: true,
    })
  );
  dialog = openDialog(t("Find"), [make("div", { class: "with-icon" }, icon("search"), input), options], { class: "dialog palette" });
  dialog.addEventListener("close", () => (dialog = null));
  const search = new Search(input, options);
  input.addEventListener("input", () => search.look());
  input.addEventListener("keydown", (event) => search.press(event));
  search.look();
}

class Search {
  /** @type {Choice[]} */
  choices = [];
  at = 0;
  timer = 0;
  asked = 0;

  /** @param {HTMLInputElement} input @param {HTMLElement} options */
  constructor(input, options) {
    this.input = input;
    this.options = options;
    this.fixed = fixedChoices();
  }

  look() {
    const wanted = this.input.value.trim().toLowerCase();
    const known = this.fixed.filter(({ label }) => label.toLowerCase().includes(wanted));
    this.show(known);
    this.asked += 1;
    clearTimeout(this.timer);
    if (wanted) this.timer = setTimeout(() => this.find(known), ASK_MS);
  }

  /** @param {Choice[]} known */
  async find(known) {
    const number = this.asked;
    const query = new URLSearchParams({ q: this.input.value.trim(), limit: String(MOST) });
    const page = await request(`/api/v1/documents?${query}`).catch(() => ({ items: [] }));
    if (number !== this.asked || !this.input.isConnected) return;
    const found = page.items.map((/** @type {any} */ item) => ({
      label: item.title,
      hint: t("Document"),
      glyph: "library",
      go: () => location.assign(`/documents/${item.id}`),
    }));
    this.show([...known, ...found], this.at);
  }

  /** @param {Choice[]} choices @param {number} [at] the current selection */
  show(choices, at = 0) {
    this.choices = choices;
    const lines = choices.map(({ label, hint, glyph }, index) =>
      make(
        "li",
        { role: "option", id: `palette-${index}`, "aria-selected": "false", click: () => this.choose(index), pointermove: () => this.select(index) },
        icon(glyph),
        make("span", { class: "cut" }, label),
        make("span", { class: "quiet small" }, hint),
      ),
    );
    this.options.replaceChildren(...(lines.length ? lines : [make("li", { class: "quiet none", role: "presentation" }, t("No matches"))]));
    this.select(at);
  }

  /** @param {number} index */
  select(index) {
    this.at = index;
    const lines = all('[role="option"]', this.options);
    lines.forEach((line, number) => line.setAttribute("aria-selected", String(number === index)));
    lines[index]?.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", lines[index]?.id ?? "");
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.choices.length) this.select((this.at + step + this.choices.length) % this.choices.length);
    else if (event.key === "Enter") this.choose(this.at);
    else if (event.key === "Escape") dialog?.close(); // the browser would only clear the field
    else return;
    event.preventDefault();
  }

  /** @param {number} index */
  choose(index) {
    const choice = this.choices[index];
    if (!choice) return;
    dialog?.close();
    choice.go();
  }
}

/** The pages of the rail and the actions of the page. @returns {Choice[]} */
function fixedChoices() {
  const pages = all(".rail a.place").map((link) => ({
    label: link.title || link.textContent.trim(),
    hint: t("Page"),
    glyph: one("use", link)?.getAttribute("href").split("#")[1] ?? "library",
    go: () => location.assign(link.href),
  }));
  const trash = { label: t("Trash"), hint: t("Page"), glyph: "trash", go: () => location.assign("/trash") };
  const actions = one("#files") ? [{ label: t("Add files"), hint: t("Action"), glyph: "upload", go: () => one("#files").click() }] : [];
  const paste = one("#paste") ? [{ label: t("Add a link or text"), hint: t("Action"), glyph: "link", go: () => one("#paste").focus() }] : [];
  return [...actions, ...paste, ...pages, trash];
}
