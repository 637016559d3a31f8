// A prepared export: its progress is requested every two seconds, and its page is loaded again when it has ended.

import { format, one, t } from "../../shell/js/dom.js";
import { request } from "../../shell/js/request.js";

const EVERY = 2000;
const RUNNING = ["queued", "processing", "paused"];
const section = one("[data-export]");

async function follow() {
  try {
    const found = await request(`/api/v1/exports/${section.dataset.export}`);
    if (!RUNNING.includes(found.status)) return location.reload();
    show(found);
  } catch {
    // The next request may succeed.
  }
  setTimeout(follow, EVERY);
}

/** @param {{documents: number, total: number | null}} found */
function show({ documents, total }) {
  if (total === null) return;
  const bar = one("progress", section);
  bar.max = Math.max(total, 1);
  bar.value = documents;
  one("[data-line]", section).textContent = t("%(done)s of %(total)s documents", { done: format(documents), total: format(total) });
}

if (section) setTimeout(follow, EVERY);
