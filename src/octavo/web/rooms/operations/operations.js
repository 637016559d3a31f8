// Updates the operations page live. Parts that are focused, selected, hovered or pressed stay as they are.

import { fetchPiece } from "../../shell/js/request.js";
import { confirm } from "../../shell/js/dialog.js";
import { all, make, one, parse, plural, t } from "../../shell/js/dom.js";
import { onEvent, onLost } from "../../shell/js/live.js";
import { throttled } from "../../shell/js/throttle.js";

const LEAST_MS = 1000;
const OTHERS_MS = 10_000; // there are no live events for other owners' jobs
const PLAIN = ["#op-health", "#op-wrong"];
const TABLES = ["#op-workers", "#op-schedules", "#op-stages", "#op-costs", ...(one("#op-circuits") ? ["#op-circuits"] : [])];

const form = one("#letters");
const letters = one("#op-letters");
const boxes = () => all("input[name=ids]", letters);
const picked = () => boxes().filter((box) => box.checked);
const plan = throttled(async () => show(parse(await fetchPiece("/operations/pieces"))), LEAST_MS);
let pressed = false;

// Live updates ------------------------------------------------------------------------------------------------------

/** @param {HTMLElement} fresh */
function show(fresh) {
  for (const place of PLAIN) put(place, fresh);
  for (const number of all("[id^=op-count-]")) {
    const now = one(`#${number.id}`, fresh);
    number.className = now.className;
    if (number.textContent !== now.textContent) number.textContent = now.textContent;
  }
  for (const place of TABLES) if (!isInUse(one(place))) put(place, fresh);
  showLetters(one("#op-letters", fresh));
}

/** @param {string} place @param {HTMLElement} fresh */
function put(place, fresh) {
  const [here, now] = [one(place), one(place, fresh)];
  if (here.innerHTML !== now.innerHTML) here.replaceChildren(...now.childNodes);
}

/** @param {Element} place */
const isInUse = (place) => pressed || place.contains(document.activeElement) || place.matches(":hover");

/** While rows are selected, new rows wait behind a button and removed rows fade. @param {HTMLElement} fresh */
function showLetters(fresh) {
  const now = new Set([...fresh.children].map((row) => row.id));
  const known = new Set([...letters.children].map((row) => row.id));
  const isFree = !picked().length && !isInUse(letters);
  if (isFree) letters.replaceChildren(...fresh.children);
  else for (const row of letters.children) row.classList.toggle("leaving", !now.has(row.id));
  const arrived = isFree ? 0 : [...now].filter((id) => !known.has(id)).length;
  one("#op-arrived").hidden = !arrived;
  one("#op-arrived").textContent = `${t("%(number)s new", { number: arrived })} · ${t("Show")}`;
  tally();
}

// Selection ---------------------------------------------------------------------------------------------------------

function tally() {
  const number = picked().length;
  const every = one("[data-all]", form);
  one("#op-verbs").hidden = !boxes().length;
  one("[data-picked]", form).hidden = !number;
  one("[data-picked]", form).textContent = t("%(number)s selected", { number });
  every.checked = number > 0 && number === boxes().length;
  every.indeterminate = number > 0 && number < boxes().length;
  for (const verb of all("[name=action]", form)) verb.disabled = !number;
}

/** @param {SubmitEvent} event */
async function submit(event) {
  const verb = /** @type {HTMLButtonElement} */ (event.submitter);
  if (verb?.value !== "discard") return;
  event.preventDefault();
  const number = picked().length;
  const question = {
    title: plural("Discard %(number)s failed job?", "Discard %(number)s failed jobs?", number),
    text: t("The jobs will be removed from this list. Their documents and events are kept."),
    verb: t("Discard %(number)s", { number }),
  };
  if (!(await confirm(question))) return;
  const fields = { action: "discard", confirmed: "true" };
  form.append(...Object.entries(fields).map(([name, value]) => make("input", { type: "hidden", name, value })));
  form.submit();
}

one(".all", form).hidden = false;
one("[data-all]", form).addEventListener("change", (/** @type {any} */ event) => {
  for (const box of boxes()) box.checked = event.target.checked;
  tally();
});
form.addEventListener("submit", submit);
letters.addEventListener("change", tally);
one("#op-arrived").addEventListener("click", () => location.reload());
addEventListener("pointerdown", () => (pressed = true), true);
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => setTimeout(() => (pressed = false)), true);
onEvent(plan);
onLost(plan);
setInterval(plan, OTHERS_MS);
tally();
