// The page with all highlights: a deleted highlight can be restored.

import { all, one, t } from "../../shell/js/dom.js";
import { request } from "../../shell/js/request.js";
import { complain, undoable } from "../../shell/js/toast.js";

/** @param {string} path @param {string} method @param {object} [body] */
const call = (path, method, body) => request(`/api/v1${path}`, { method, headers: { "content-type": "application/json" }, body: body && JSON.stringify(body) });

/** Hides a highlight, and its document if it was the last one there. @param {HTMLElement} item @param {boolean} hidden */
function setHidden(item, hidden) {
  item.hidden = hidden;
  const group = /** @type {HTMLElement} */ (item.closest(".group"));
  group.hidden = all("[data-highlight]", group).every((each) => each.hidden);
}

/** @param {HTMLElement} item */
async function restore(item) {
  const { document: of, before, colour } = item.dataset;
  const passage = { quote: one("blockquote", item).textContent, text_before: before, colour, note: one(".why", item)?.textContent ?? "" };
  item.dataset.highlight = (await call(`/documents/${of}/highlights`, "POST", passage)).id;
  setHidden(item, false);
  one("form button", item).focus();
}

document.addEventListener("submit", async (event) => {
  const item = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("[data-highlight]"));
  if (!item || "lost" in item.dataset) return; // the text no longer contains the passage, so it could not be restored
  event.preventDefault();
  try {
    await call(`/highlights/${item.dataset.highlight}`, "DELETE");
    setHidden(item, true);
    undoable(t("Highlight deleted."), () => restore(item).catch(complain));
  } catch (error) {
    complain(error);
  }
});
