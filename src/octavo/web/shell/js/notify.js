// Tells in the browser what ended while nobody looked at the page. Off until somebody asks for it with the button.

import { ask } from "./ask.js";
import { one } from "./dom.js";
import { onEvent } from "./live.js";

const WANTED = "octavo_tell_me";
/** @type {Record<string, string>} */
const ENDS = { complete: "is ready", failed: "could not be processed", dead_letter: "was given up" };

const isPossible = () => "Notification" in window && window.isSecureContext;
const isWanted = () => isPossible() && Notification.permission === "granted" && localStorage.getItem(WANTED) === "yes";

export function startNotifying() {
  onEvent(tell);
  const button = one("#tell-me");
  if (!button || !isPossible()) return;
  show(button);
  button.addEventListener("click", async () => {
    if (isWanted()) localStorage.removeItem(WANTED);
    else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(WANTED, "yes");
    show(button);
  });
}

/** @param {HTMLButtonElement} button */
function show(button) {
  const refused = Notification.permission === "denied";
  button.hidden = false;
  button.disabled = refused;
  button.setAttribute("aria-pressed", String(isWanted()));
  one("span", button).textContent = refused ? "This browser does not allow notices" : isWanted() ? "Told in this browser" : "Tell me in this browser";
}

/** @param {import("./live.js").Happening} event */
async function tell({ id, process_id, state_after, document_id }) {
  if (!document.hidden || !document_id || !state_after || !(state_after in ENDS) || !isWanted()) return;
  const { title, process_id: made_by = process_id } = await ask(`/api/v1/documents/${document_id}`).catch(() => ({}));
  if (made_by !== process_id) return; // a small job about it, which changes nothing that can be read
  const body = `${title ? `“${title}”` : "A document"} ${ENDS[state_after]}.`;
  try {
    // Every tab hears of it; with the same tag a later one takes the place of an earlier one.
    const shown = new Notification("Octavo", { body, tag: `octavo-${id}` });
    shown.addEventListener("click", () => {
      focus();
      location.assign(`/documents/${document_id}`);
    });
  } catch {
    // Some phones let only installed applications do this.
  }
}
