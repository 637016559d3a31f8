// Outline and About: beside the text where there is room, otherwise a drawer or a sheet above it.

import { all, one } from "./dom.js";

const YEAR_SECONDS = 31_536_000;
const DRAWERS = { outline: matchMedia("(max-width: 1199px)"), about: matchMedia("(max-width: 959px)") };
const COOKIES = { outline: "octavo_outline", about: "octavo_panel" };
/** @type {HTMLElement | null} who opened the drawer */
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

export function startPanels() {
  for (const link of all("[data-open]")) {
    link.addEventListener("click", (/** @type {Event} */ event) => {
      event.preventDefault();
      opener = link;
      setPanel(link.dataset.open, true);
    });
  }
  for (const link of all("[data-close]")) {
    link.addEventListener("click", (/** @type {Event} */ event) => {
      event.preventDefault();
      if (!closeDrawers()) setPanel(link.dataset.close, false);
    });
  }
  one("[data-close-all]").addEventListener("click", (/** @type {Event} */ event) => {
    event.preventDefault();
    closeDrawers();
  });
  one("[data-open-page]")?.addEventListener("click", (/** @type {Event} */ event) => {
    event.preventDefault();
    const menu = one(".pages");
    menu.open = !menu.open;
    if (menu.open) one("input", menu).focus();
  });
  // Menus close when something in them is clicked, but a number is still to be written here.
  one(".go")?.addEventListener("click", (/** @type {Event} */ event) => event.stopPropagation());
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && closeDrawers()) event.stopPropagation();
  });
}
