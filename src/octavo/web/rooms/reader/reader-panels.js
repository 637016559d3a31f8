// Outline and About: next to the text on wide screens, otherwise a drawer or a sheet.

import { all, one } from "../../shell/js/dom.js";

const YEAR_SECONDS = 31_536_000;
const DRAWERS = { outline: matchMedia("(max-width: 1199px)"), about: matchMedia("(max-width: 959px)") };
const COOKIES = { outline: "octavo_outline", about: "octavo_panel" };
/** @type {HTMLElement | null} the element that opened the drawer */
let opener = null;

/** @param {"outline" | "about"} name @param {boolean} open */
function setPanel(name, open) {
  const panel = document.getElementById(name);
  if (!panel) return;
  const { classList } = document.body;
  if (DRAWERS[name].matches) {
    closeDrawers();
    classList.toggle(`${name}-drawer`, open);
    if (open) all(".close", panel).find((link) => link.offsetParent)?.focus({ preventScroll: true });
    return;
  }
  classList.toggle(`${name}-closed`, !open);
  const kept = open ? `; max-age=0` : `closed; max-age=${YEAR_SECONDS}`;
  document.cookie = `${COOKIES[name]}=${kept}; path=/; samesite=lax`;
}

export function closeDrawers() {
  const open = Object.keys(DRAWERS).some((name) => document.body.classList.contains(`${name}-drawer`));
  document.body.classList.remove("outline-drawer", "about-drawer");
  if (open && opener?.isConnected) opener.focus({ preventScroll: true });
  return open;
}

/** @param {"outline" | "about"} name */
export function togglePanel(name) {
  const { classList } = document.body;
  const isOpen = DRAWERS[name].matches ? classList.contains(`${name}-drawer`) : !classList.contains(`${name}-closed`);
  opener = /** @type {HTMLElement | null} */ (document.activeElement);
  setPanel(name, !isOpen);
}

/** Runs an action instead of following the link. @param {string} selector @param {(link: any) => void} act */
export function onClick(selector, act) {
  for (const link of all(selector)) {
    link.addEventListener("click", (/** @type {Event} */ event) => {
      event.preventDefault();
      act(link);
    });
  }
}

export function startPanels() {
  onClick("[data-open]", (link) => {
    opener = link;
    setPanel(link.dataset.open, true);
  });
  onClick("[data-close]", (link) => closeDrawers() || setPanel(link.dataset.close, false));
  onClick("[data-close-all]", closeDrawers);
  onClick("[data-open-page]", () => {
    const menu = one(".pages");
    menu.open = !menu.open;
    if (menu.open) one("input", menu).focus();
  });
  // Menus close on a click inside, except for this field.
  one(".go")?.addEventListener("click", (/** @type {Event} */ event) => event.stopPropagation());
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && closeDrawers()) event.stopPropagation();
  });
}
