// The reader: loads more text while scrolling, marks the reading position, and offers a newer text. Text on the page is
// never changed while it is read.

import { all, isField, one, parse, t } from "../../shell/js/dom.js";
import { fetchPiece } from "../../shell/js/request.js";
import { onEvent, onLost } from "../../shell/js/live.js";
import { throttled } from "../../shell/js/throttle.js";
import { onClick, startPanels, togglePanel } from "./reader-panels.js";
import { openPicture, startPictures } from "./reader-picture.js";
import { locate, movePage, movePassage, startPlace } from "./reader-place.js";

const BATCH_MS = 250;
const LOOK_MS = 2000;
const SIZES = [16, 18, 20, 22, 24];
const YEAR_SECONDS = 31_536_000;
const NEAR_PX = 1500;
const SECOND_MS = 1500;
const HOLD_FRAMES = 10;

const leaves = one("#leaves");
const state = () => one("#state");

// Windows ---------------------------------------------------------------------------------------------------------

/** @type {Set<"earlier" | "later">} sides that are being loaded */
const loading = new Set();

/** @param {string} start @returns {Promise<HTMLElement | null>} */
async function fetchWindow(start) {
  const query = new URLSearchParams({ from: start, revision: leaves.dataset.revision });
  try {
    const piece = one(".window", parse(await fetchPiece(`${leaves.dataset.address}/text?${query}`)));
    return piece && document.adoptNode(piece);
  } catch (error) {
    if (/** @type {any} */ (error).status === 409) one("#newer").hidden = false;
    return null;
  }
}

/** @param {"earlier" | "later"} side @param {HTMLElement} link */
async function load(side, link) {
  const edge = side === "later" ? all(".window", leaves).at(-1) : one(".window", leaves);
  if (loading.has(side) || !edge.dataset[side]) return;
  loading.add(side);
  const piece = await fetchWindow(edge.dataset[side]);
  loading.delete(side);
  if (!piece) return;
  const mark = one(".turn, .passage", edge) ?? edge;
  const before = mark.getBoundingClientRect().top;
  edge[side === "later" ? "after" : "before"](piece);
  turn(link, piece, side);
  if (side === "earlier") hold(mark, before, HOLD_FRAMES);
  locate();
}

/**
 * Keeps the reading position while the text inserted above it is laid out.
 * @param {Element} mark @param {number} top @param {number} frames
 */
function hold(mark, top, frames) {
  const moved = mark.getBoundingClientRect().top - top;
  if (Math.abs(moved) >= 1) scroller().scrollBy(0, moved);
  if (frames) requestAnimationFrame(() => hold(mark, top, frames - 1));
}

/** Updates the link to the next window. @param {HTMLElement} link @param {HTMLElement} piece @param {"earlier" | "later"} side */
function turn(link, piece, side) {
  const start = piece.dataset[side];
  if (!start) return link.parentElement?.remove();
  link.setAttribute("href", `${leaves.dataset.address}?at=${start}`);
  const words = [...link.childNodes].find((node) => node instanceof Text && node.data.trim());
  if (words) words.textContent = piece.dataset[`${side}Label`] || (side === "later" ? t("Later text") : t("Earlier text"));
}

const isPhone = matchMedia("(max-width: 720px)");
const scroller = () => (isPhone.matches ? document.scrollingElement : one("#text"));

function startWindows() {
  const later = one("a[data-later]", leaves);
  onClick("a[data-earlier]", (link) => load("earlier", link));
  onClick("a[data-later]", (link) => load("later", link));
  if (!later) return;
  /** @type {IntersectionObserver | undefined} */
  let eye;
  const look = () => {
    eye?.disconnect();
    const near = { root: isPhone.matches ? null : one("#text"), rootMargin: `0px 0px ${NEAR_PX}px 0px` };
    eye = new IntersectionObserver(async (changes) => {
      if (!changes.at(-1)?.isIntersecting) return; // a busy browser reports several changes together, the last one counts
      await load("later", later);
      // If the loaded window is short, its end may still be near.
      eye?.unobserve(later);
      if (later.isConnected) setTimeout(() => eye?.observe(later), BATCH_MS);
    }, near);
    eye.observe(later);
  };
  look();
  isPhone.addEventListener("change", look);
}

// Status ----------------------------------------------------------------------------------------------------------

async function refresh() {
  const shown = state();
  const fresh = parse(await fetchPiece(`/documents/${shown.dataset.document}/state`));
  const now = one("#state", fresh);
  shown.replaceChildren(...now.childNodes);
  shown.dataset.status = now.dataset.status;
  patch(one("#going"), one("#going", fresh));
  patch(one("#note"), one("#note", fresh));
  const bones = one(".bones");
  if (bones) bones.hidden = now.dataset.status !== "pending";
  tell(now.dataset);
}

/** Replaces a part of the page, unless it is being used. @param {HTMLElement | null} shown @param {HTMLElement | null} now */
function patch(shown, now) {
  if (!shown || !now || shown.innerHTML.trim() === now.innerHTML.trim()) return;
  if (!shown.contains(document.activeElement) && !shown.matches(":active")) shown.replaceChildren(...now.childNodes);
}

/** @param {DOMStringMap} now */
function tell(now) {
  const readable = "readable" in now;
  if (readable && !("readable" in state().dataset)) one("#ready").hidden = false;
  else if (readable && leaves && now.revision !== leaves.dataset.revision) one("#newer").hidden = false;
}

function startState() {
  const plan = throttled(refresh, BATCH_MS);
  onEvent((event) => event.document_id === state().dataset.document && plan());
  onLost(plan);
  setInterval(() => !document.hidden && state().dataset.status === "pending" && plan(), LOOK_MS);
}

// Size and keys ---------------------------------------------------------------------------------------------------

/** @param {number} size */
function setSize(size) {
  const { classList } = document.body;
  for (const one of SIZES) classList.toggle(`size-${one}`, one === size);
  document.cookie = `octavo_text_size=${size}; path=/; max-age=${YEAR_SECONDS}; samesite=lax`;
  for (const button of all("[data-sizes] button")) button.setAttribute("aria-pressed", String(Number(button.value) === size));
}

/** @param {number} step */
function resize(step) {
  const now = SIZES.findIndex((size) => document.body.classList.contains(`size-${size}`));
  setSize(SIZES[Math.min(Math.max(now + step, 0), SIZES.length - 1)]);
}

const KEYS = {
  j: () => movePassage(1),
  k: () => movePassage(-1),
  "]": () => movePage(1),
  "[": () => movePage(-1),
  "+": () => resize(1),
  "=": () => resize(1),
  "-": () => resize(-1),
  o: () => togglePanel("outline"),
  p: () => openPicture(),
};

function startKeys() {
  if (document.cookie.split("; ").includes("octavo_keys=off")) return;
  let went = -SECOND_MS; // after "g" a letter is a shortcut to a page
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isField(event.target)) return;
    const goes = performance.now() - went < SECOND_MS;
    went = event.key === "g" ? performance.now() : -SECOND_MS;
    const act = KEYS[/** @type {keyof typeof KEYS} */ (event.key)];
    if (!act || goes || one("dialog[open]")) return;
    event.preventDefault();
    act();
  });
}

function startCopying() {
  if (!navigator.clipboard) return;
  for (const button of all("[data-copy-text]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copyText);
      button.title = t("Copied");
      one("#announcements").textContent = t("Copied.");
    });
  }
}

startPanels();
startState();
startCopying();
if (leaves) {
  startWindows();
  startPictures();
  startPlace(scroller);
  startKeys();
  onClick(".where [data-step]", (link) => movePage(link.dataset.step === "1" ? 1 : -1));
  one("[data-sizes]")?.addEventListener("submit", (/** @type {any} */ event) => {
    event.preventDefault();
    setSize(Number(event.submitter.value));
  });
}
