// A button beside a field that puts it into the clipboard; without a script the field is selected by hand.
const SHOWN_MS = 4000;

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
      // Without https browsers have no clipboard for pages, but they still copy what is selected.
      document.execCommand("copy");
    }
    word.textContent = "Copied";
    setTimeout(() => (word.textContent = "Copy"), SHOWN_MS);
  });
}
