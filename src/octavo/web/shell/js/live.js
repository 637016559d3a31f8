// Live events: one stream for all tabs of a browser, with polling as the fallback.
//
// The tab that holds the lock reads for all tabs and broadcasts the events. When no job is active the stream is closed;
// an action in any tab, or focusing the window, opens it again.

import { one, t } from "./dom.js";

const ADDRESS = "/api/v1/events";
const POLL_MS = 5000;
const STREAM_AGAIN_MS = 60_000;
const SETTLE_MS = 1500;
const IDLE_MS = 30_000;
const LATER_MS = 2000;
const MOST_ERRORS = 2;
const MOST_TOLD = 1000;
const WORDS = { live: t("Live"), reconnecting: t("Reconnecting"), polling: t("Polling"), off: t("Up to date") };

/** @typedef {{id: number, kind: string, process_id: string, document_id: string | null, state_after: string | null, detail?: any}} LiveEvent */

/** @type {Set<(event: LiveEvent) => void>} */
const listeners = new Set();
/** @type {Set<() => void>} */
const losers = new Set();
/** @type {Set<number>} ids of recent events; stream and polling may both deliver one */
const told = new Set();
/** @type {EventSource | null} */
let stream = null;
let cursor = "";
let errors = 0;
let leading = false;
let wanted = false;
let polling = 0;
let again = 0;
let settling = 0;
let active = 0;
/** @type {BroadcastChannel | null} */
let channel = null;

/** @param {(event: LiveEvent) => void} listener */
export const onEvent = (listener) => listeners.add(listener);

/** Called when too many events were missed and everything must be reloaded. @param {() => void} listener */
export const onLost = (listener) => losers.add(listener);

export function startLive() {
  const { owner, cursor: start, active: working } = document.body.dataset;
  cursor = start ?? "";
  active = Number(working);
  channel = new BroadcastChannel(`octavo-${owner}`);
  channel.addEventListener("message", ({ data }) => hear(data));
  addEventListener("focus", comeBack);
  addEventListener("pagehide", close);
  addEventListener("pageshow", (event) => event.persisted && wake());
  lead(`octavo-live-${owner}`);
  if (active) open();
  else catchUp();
}

/** Opens the stream in all tabs, before an action that causes events. */
export function wake() {
  channel?.postMessage({ type: "wake" });
  open();
}

/** The number of active jobs; the stream is closed when it is 0. @param {number} working */
export function settle(working) {
  active = working;
  clearTimeout(settling);
  if (active) open();
  else settling = setTimeout(rest, SETTLE_MS);
}

/** @param {string} name */
async function lead(name) {
  // Without locks (on an insecure address) every tab reads its own stream.
  if (!navigator.locks) return void (leading = true);
  await navigator.locks.request(name, () => {
    leading = true;
    if (wanted) open();
    return new Promise(() => {}); // until this tab is closed
  });
}

/** @param {any} message */
function hear(message) {
  if (message.type === "wake") open();
  else if (leading) return;
  else if (message.type === "event") take(message.event, message.cursor);
  else if (message.type === "state") show(message.state);
  else if (message.type === "lost") losers.forEach((tell) => tell());
}

/** @param {LiveEvent} event @param {string} place */
function take(event, place) {
  if (place) cursor = place;
  if (told.has(event.id)) return;
  told.add(event.id);
  if (told.size > MOST_TOLD) told.delete([...told][0]);
  clearTimeout(settling);
  if (leading) channel?.postMessage({ type: "event", event, cursor });
  listeners.forEach((tell) => tell(event));
}

// The stream ------------------------------------------------------------------------------------------------------

function open() {
  clearTimeout(settling);
  wanted = true;
  if (!leading || stream || polling) return;
  connect();
}

function connect() {
  stream?.close();
  const opened = new EventSource(`${ADDRESS}?after=${cursor}`);
  stream = opened;
  opened.addEventListener("hello", (event) => {
    errors = 0;
    cursor = event.lastEventId || cursor;
    stopPolling();
    show("live");
    if (!active) settling = setTimeout(rest, IDLE_MS); // in case no event follows
  });
  opened.addEventListener("message", (event) => take(JSON.parse(event.data), event.lastEventId));
  opened.addEventListener("error", () => fail(opened));
}

/** The browser reconnects automatically, unless the server refused. @param {EventSource} failed */
function fail(failed) {
  if (failed !== stream) return;
  errors += 1;
  if (polling) return dropStream(); // the attempt once a minute
  if (errors < MOST_ERRORS && failed.readyState !== EventSource.CLOSED) return show("reconnecting");
  dropStream();
  show("polling");
  poll();
}

function dropStream() {
  stream?.close();
  stream = null;
}

/** Closes the stream, because no job is active. */
function rest() {
  wanted = false;
  if (!leading) return;
  dropStream();
  stopPolling();
  errors = 0;
  show("off");
}

function close() {
  dropStream();
  stopPolling();
}

// Polling ---------------------------------------------------------------------------------------------------------

async function poll() {
  clearTimeout(polling);
  polling = setTimeout(poll, POLL_MS);
  if (!again) again = setInterval(connect, STREAM_AGAIN_MS);
  const state = await catchUp();
  if (polling) show(state);
}

function stopPolling() {
  clearTimeout(polling);
  clearInterval(again);
  polling = again = 0;
}

/** An event is published after all earlier transactions ended, so the latest ones may arrive a little later. */
function comeBack() {
  catchUp();
  setTimeout(catchUp, LATER_MS);
}

/** Fetches all events since the cursor. @returns {Promise<"polling" | "reconnecting">} */
async function catchUp() {
  try {
    const answer = await fetch(`${ADDRESS}?format=json&after=${cursor}`, { headers: { accept: "application/json" } });
    if (answer.status === 410) return lose();
    if (!answer.ok) return "reconnecting";
    const page = await answer.json();
    for (const event of page.items) take(event, "");
    cursor = page.cursor;
    if (page.items.length) open();
    return "polling";
  } catch {
    return "reconnecting";
  }
}

/** Starts again at the latest event, because too many events were missed. */
async function lose() {
  const answer = await fetch(`${ADDRESS}?format=json`, { headers: { accept: "application/json" } });
  if (answer.ok) cursor = (await answer.json()).cursor;
  losers.forEach((tell) => tell());
  if (leading) channel?.postMessage({ type: "lost" });
  return /** @type {const} */ ("polling");
}

/** @param {keyof typeof WORDS} state */
function show(state) {
  if (leading) channel?.postMessage({ type: "state", state });
  const place = one("#live");
  if (!place || place.dataset.state === state) return;
  place.dataset.state = state;
  place.title = WORDS[state];
  one(".word", place).textContent = WORDS[state];
}
