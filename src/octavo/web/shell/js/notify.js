// Browser notifications about work that finished while the page was in the background. Off until enabled.

import { one, t } from "./dom.js";
import { onEvent } from "./live.js";

const WANTED = "octavo_tell_me";
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
  one("span", button).textContent = refused ? t("Notifications are blocked in this browser") : isWanted() ? t("Browser notifications are on") : t("Enable browser notifications");
}

/** @param {import("./live.js").LiveEvent} event */
async function tell(event) {
  if (!document.hidden || !isWanted()) return;
  const { notify } = await import("./notification.js");
  await notify(event);
}
