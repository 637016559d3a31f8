// A button that copies a field to the clipboard. Without a script the text can be selected by hand.
const SHOWN_MS = 4000;

import { t } from "./dom.js";
for (const button of /** @type {any} */ (document.querySelectorAll("[data-copy]"))) {
  const field = /** @type {HTMLInputElement} */ (document.getElementById(button.dataset.copy));
  const word = button.querySelector("span");
  button.hidden = false;
  field.addEventListener("focus", () => field.select());
  button.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
    } catch {
      // Without https there is no clipboard API, but browsers still copy the selection.
      document.execCommand("copy");
    }
    word.textContent = t("Copied");
    setTimeout(() => (word.textContent = t("Copy")), SHOWN_MS);
  });
}
