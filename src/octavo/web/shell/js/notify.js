// Browser notifications for documents, analyses and conversions that finished while the page was in the background. Off until enabled.

import { request } from "./request.js";
import { one } from "./dom.js";
import { onEvent } from "./live.js";

const WANTED = "octavo_tell_me";
/** @type {Record<string, string>} */
const ENDS = { complete: "is ready", failed: "could not be processed", dead_letter: "failed for good" };

/** Analyses and conversions have their own events. @type {Record<string, string>} */
const OWN_ENDS = {
  "analysis.completed": "was analysed",
  "analysis.failed": "could not be analysed",
  "analysis.abandoned": "was not analysed in two days",
  "conversion.completed": "was converted",
  "conversion.needs_review": "was converted and needs review",
  "conversion.failed": "could not be converted",
};

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
async function tell(event) {
  if (!document.hidden || !isWanted()) return;
  const found = event.kind in OWN_ENDS ? await describeOwn(event) : await describeDocument(event);
  if (!found) return;
  try {
    // Every tab gets the event; notifications with the same tag replace each other.
    const shown = new Notification("Octavo", { body: found.body, tag: `octavo-${event.id}` });
    shown.addEventListener("click", () => {
      focus();
      location.assign(found.address);
    });
  } catch {
    // Some phones allow this only for installed applications.
  }
}

/** @param {import("./live.js").LiveEvent} event */
async function describeDocument({ process_id, state_after, document_id }) {
  if (!document_id || !state_after || !(state_after in ENDS)) return null;
  const { title, process_id: made_by = process_id } = await request(`/api/v1/documents/${document_id}`).catch(() => ({}));
  if (made_by !== process_id) return null; // a follow-up job that does not change the text
  return { body: `${title ? `“${title}”` : "A document"} ${ENDS[state_after]}.`, address: `/documents/${document_id}` };
}

/** @param {import("./live.js").LiveEvent} event */
async function describeOwn({ kind, process_id, document_id, detail }) {
  const room = kind.startsWith("conversion.") ? "conversions" : "analyses";
  const path = room === "conversions" ? `/api/v1/conversions/${process_id}` : `/api/v1/documents/${document_id}`;
  const { filename, title } = await request(path).catch(() => ({}));
  const name = room === "conversions" ? filename : title;
  const why = (detail?.reason ?? detail?.error?.message ?? "").replace(/\.$/, "");
  const body = `${name ? `“${name}”` : "A document"} ${OWN_ENDS[kind]}${why ? `: ${why}` : ""}.`;
  return { body, address: `/${room}/${process_id}` };
}
