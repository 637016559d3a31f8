// The filter of the API reference, and opening the entry that a link leads to.
const box = /** @type {HTMLInputElement} */ (document.getElementById("api-filter"));
const found = /** @type {HTMLElement} */ (document.getElementById("api-found"));
const entries = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-words]")]);
const groups = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(".api-group")]);

function filter() {
  const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const entry of entries) {
    const text = entry.dataset.words ?? "";
    entry.hidden = !words.every((word) => text.includes(word));
    shown += entry.hidden ? 0 : 1;
  }
  for (const group of groups) group.hidden = !group.querySelector("[data-words]:not([hidden])");
  found.textContent = words.length ? `${shown} found` : "";
}

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const details = target?.querySelector(":scope > details");
  if (!target || !(details instanceof HTMLDetailsElement)) return;
  target.hidden = false;
  details.open = true;
  target.scrollIntoView();
}

if (box.parentElement) box.parentElement.hidden = false;
box.addEventListener("input", filter);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !(/** @type {Element} */ (event.target).closest("input, textarea"))) {
    event.preventDefault();
    box.focus();
  }
});
addEventListener("hashchange", openTarget);
openTarget();
