// Sliders of the weights: the number follows the thumb, and letting go is enough.

import { all, one } from "../../shell/js/dom.js";
import { ask } from "../../shell/js/ask.js";
import { complain } from "../../shell/js/toast.js";

const form = one("#weights");
const button = one("[data-save]", form);
if (button) button.hidden = true;

form.addEventListener("input", () => {
  for (const slider of all("input[type=range]", form)) one(`output[for="${slider.id}"]`, form).value = slider.value;
});
// One after the other, so that the last word is the last to arrive.
let line = Promise.resolve();
form.addEventListener("change", () => (line = line.then(save)));

async function save() {
  try {
    await ask(form.action, { method: "POST", body: new URLSearchParams(/** @type {any} */ (new FormData(form))) });
    one("#announcements").textContent = "All lists are in the new order.";
  } catch (error) {
    complain(error);
  }
}
