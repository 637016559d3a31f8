// The native dialog: it keeps the focus inside, closes by Esc and gives the focus back.

import { make } from "./dom.js";

/**
 * @param {string} title
 * @param {(Node | null)[]} content
 * @param {Record<string, any>} [attributes]
 * @returns {HTMLDialogElement} open, and gone when it is closed
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
 * A question before something that cannot be taken back; it names the thing.
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
        make("button", { class: "button", type: "button", autofocus: true, click: () => dialog.close() }, "Keep"),
        make("button", { class: "button danger", type: "button", click: () => dialog.close("yes") }, verb),
      ),
    ]);
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"));
  });
}
