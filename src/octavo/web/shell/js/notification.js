// A browser notification about a document, an analysis or a conversion that finished. Loaded when the first one is shown.

import { t } from "./dom.js";
import { request } from "./request.js";

/** @type {Record<string, string>} */
const ENDS = { complete: t("%(name)s is ready"), failed: t("%(name)s could not be processed"), dead_letter: t("%(name)s failed for good") };

/** Analyses and conversions have their own events. @type {Record<string, string>} */
const OWN_ENDS = {
  "analysis.completed": t("%(name)s was analysed"),
  "analysis.failed": t("%(name)s could not be analysed"),
  "analysis.stalled": t("An analysis of %(name)s is stuck"),
  "analysis.abandoned": t("%(name)s: the analysis was abandoned after two days without progress"),
  "conversion.completed": t("%(name)s was converted"),
  "conversion.needs_review": t("%(name)s was converted and needs review"),
  "conversion.failed": t("%(name)s could not be converted"),
};

/** @param {string} text @param {string | undefined} name */
const withName = (text, name) => text.replace("%(name)s", () => (name ? `“${name}”` : t("A document")));

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
  return { body: `${withName(ENDS[state_after], title)}.`, address: `/documents/${document_id}` };
}

/** @param {import("./live.js").LiveEvent} event */
async function describeOwn({ kind, process_id, document_id, detail }) {
  const room = kind.startsWith("conversion.") ? "conversions" : "analyses";
  const path = room === "conversions" ? `/api/v1/conversions/${process_id}` : `/api/v1/documents/${document_id}`;
  const { filename, title } = await request(path).catch(() => ({}));
  const name = room === "conversions" ? filename : title;
  const why = (detail?.reason ?? detail?.error?.message ?? "").replace(/\.$/, "");
  const body = `${withName(OWN_ENDS[kind], name)}${why ? `: ${why}` : ""}.`;
  return { body, address: `/${room}/${process_id}` };
}
