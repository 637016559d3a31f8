// The native dialog: it traps the focus, closes with Esc and restores the focus.

import { make, t } from "./dom.js";

/**
 * @param {string} title
 * @param {(Node | null)[]} content
 * @param {Record<string, any>} [attributes]
 * @returns {HTMLDialogElement} open; removed when it is closed
 */
export function openDialog(title, content, attributes = {}) {
  const before = document.activeElement;
  const dialog = /** @type {HTMLDialogElement} */ (
    make("dialog", { class: "dialog", "aria-label": title, ...attributes }, ...content)
  );
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/**
 * Confirms an action that cannot be undone.
 * @param {{title: string, text: string, verb: string}} question
 * @returns {Promise<boolean>}
 */
export function confirm({ title, text, verb }) {
  return new Promise((resolve) => {
    const dialog = openDialog(title, [
      make("h2", {}, title),
      make("p", {}, text),
      make(
        "div",
        { class: "buttons" },
        make("button", { class: "button", type: "button", autofocus: true, click: () => dialog.close() }, t("Keep")),
        make("button", { class: "button danger", type: "button", click: () => dialog.close("yes") }, verb),
      ),
    ]);
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"));
  });
}
