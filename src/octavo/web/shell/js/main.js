// Enhances pages. Everything works without scripts; each module has one job.

import { startArrivals } from "./arrivals.js";
import { startDock } from "./dock.js";
import { one } from "./dom.js";
import { startDropping } from "./drop.js";
import { trackUse } from "./in-use.js";
import { startKeys } from "./keys.js";
import { startLive } from "./live.js";
import { startNotifying } from "./notify.js";
import { startPasting } from "./paste.js";
import { startPatching } from "./patch.js";
import { startUploads } from "./upload.js";
import { startVerbs } from "./verbs.js";

trackUse();
startArrivals();
startDock();
startPatching();
startLive();
startNotifying();
startUploads();
startDropping();
startPasting();
startVerbs();
startKeys();

one("[data-add]")?.addEventListener("click", (/** @type {MouseEvent} */ event) => {
  event.preventDefault();
  one("#paste").focus();
});
