// Weight sliders: the number follows the slider, and releasing it saves.

import { all, one, t } from "../../shell/js/dom.js";
import { request } from "../../shell/js/request.js";
import { complain } from "../../shell/js/toast.js";

const form = one("#weights");
const button = one("[data-save]", form);
if (button) button.hidden = true;

form.addEventListener("input", () => {
  for (const slider of all("input[type=range]", form)) one(`output[for="${slider.id}"]`, form).value = slider.value;
});
// One request after the other, so that the last change wins.
let queue = Promise.resolve();
form.addEventListener("change", () => (queue = queue.then(save)));

async function save() {
  try {
    await request(form.action, { method: "POST", body: new URLSearchParams(/** @type {any} */ (new FormData(form))) });
    one("#announcements").textContent = t("Weights saved.");
  } catch (error) {
    complain(error);
  }
}
