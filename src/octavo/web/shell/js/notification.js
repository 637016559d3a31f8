// A browser notification about a document, an analysis or a conversion that finished. Loaded when the first one is shown.

import { request } from "./request.js";

/** @type {Record<string, string>} */
const ENDS = { complete: "is ready", failed: "could not be processed", dead_letter: "failed for good" };

/** Analyses and conversions have their own events. @type {Record<string, string>} */
const OWN_ENDS = {
  "analysis.completed": "was analysed",
  "analysis.failed": "could not be analysed",
  "analysis.stalled": "has an analysis that is stuck",
  "analysis.abandoned": "was not analysed in two days",
  "conversion.completed": "was converted",
  "conversion.needs_review": "was converted and needs review",
  "conversion.failed": "could not be converted",
};

/** @param {import("./live.js").LiveEvent} event */
export async function notify(event) {
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
  const { lane } = await request(`/api/v1/jobs/${process_id}`).catch(() => ({}));
  if (lane === "bulk") return null; // an import has one notification inside the application
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
