// Browser notifications for documents that finished while the page was in the background. Off until enabled.

import { request } from "./request.js";
import { one } from "./dom.js";
import { onEvent } from "./live.js";

const WANTED = "octavo_tell_me";
/** @type {Record<string, string>} */
const ENDS = { complete: "is ready", failed: "could not be processed", dead_letter: "failed for good" };

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
  one("span", button).textContent = refused ? "Notifications are blocked in this browser" : isWanted() ? "Browser notifications are on" : "Enable browser notifications";
}

/** @param {import("./live.js").LiveEvent} event */
async function tell({ id, process_id, state_after, document_id }) {
  if (!document.hidden || !document_id || !state_after || !(state_after in ENDS) || !isWanted()) return;
  const { title, process_id: made_by = process_id } = await request(`/api/v1/documents/${document_id}`).catch(() => ({}));
  if (made_by !== process_id) return; // a follow-up job that does not change the text
  const body = `${title ? `“${title}”` : "A document"} ${ENDS[state_after]}.`;
  try {
    // Every tab gets the event; notifications with the same tag replace each other.
    const shown = new Notification("Octavo", { body, tag: `octavo-${id}` });
    shown.addEventListener("click", () => {
      focus();
      location.assign(`/documents/${document_id}`);
    });
  } catch {
    // Some phones allow this only for installed applications.
  }
}
