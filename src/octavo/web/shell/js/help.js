// The list of keyboard shortcuts. It is loaded when somebody asks for it.

import { make, one, t } from "./dom.js";
import { openDialog } from "./dialog.js";

const HELP = [
  ["Ctrl K", t("Find a document, a page or an action")],
  ["n", t("Add a link, text or file")],
  ["u", t("Undo the last action")],
  ["Esc", t("Close / clear selection")],
  ["?", t("Show this list")],
];
const LIST_HELP = [
  ["j k", t("Next or previous document")],
  ["Enter", t("Open the document")],
  ["x", t("Select (Shift: a range)")],
  ["Delete", t("Move the selected documents to the trash")],
  ["r", t("Press the button in the highlighted row")],
];

/** @param {string[][]} help */
const lines = (help) => help.map(([keys, meaning]) => make("div", {}, make("dt", {}, ...keys.split(" ").flatMap((key) => [make("kbd", {}, key), " "])), make("dd", {}, meaning)));

/** Shows the keys of this page first. A page with its own keys has them in a template. @param {Record<string, string>} places */
export function showHelp(places) {
  const own = one("#page-keys")?.content.cloneNode(true);
  const listed = own ? [own] : lines([["/", t("Find in the library")], ...(one("#documents") ? LIST_HELP : [])]);
  const links = Object.entries(places).map(([key, address]) => [`g ${key}`, one(`.places a[href="${address}"] .word`)?.textContent]);
  const close = make("button", { class: "button", type: "button", autofocus: true, click: () => dialog.close() }, t("Close"));
  const keys = make("dl", { class: "keys" }, ...listed, ...lines([...HELP, ...links.filter(([, word]) => word)]));
  const dialog = openDialog(t("Keyboard shortcuts"), [make("h2", {}, t("Keyboard shortcuts")), keys, make("div", { class: "buttons" }, close)]);
}
