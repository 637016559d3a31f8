// Page pictures: the current page next to the text, and any page enlarged. Marked passages are also marked on their page.

import { all, one, t } from "../../shell/js/dom.js";

const SVG = "http://www.w3.org/2000/svg";
const WHOLE = 10_000;
// A short delay, so that scrolling does not load a picture for every page.
const FOLLOW_MS = 150;

const dialog = one("#page-dialog");
const beside = one(".page-picture.framed");
const enlarged = one("#page-dialog .page-picture");
const field = one("#picture-number");
/** Pages and boxes of a marked passage, in ten-thousandths. @param {HTMLElement | null} marked */
const readMarks = (marked) => (marked?.dataset.boxes ?? "").split(";").map((box) => box.split(" ").map(Number));
let marks = readMarks(beside);
let now = Number(beside?.dataset.page);
let timer = 0;

export function startPictures() {
  startFigures();
  if (!dialog) return;
  for (const view of [beside, enlarged]) {
    const image = one("img", view);
    image.addEventListener("load", () => {
      draw(view);
      bringNeighbours(view);
    });
    image.addEventListener("error", () => (image.alt = `Page ${view.dataset.page} cannot be shown`));
  }
  document.addEventListener("click", (event) => {
    const link = /** @type {any} */ (event.target).closest("[data-picture]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (link !== beside || !pickPassage(beside, event)) openPicture(Number(link.dataset.picture));
  });
  enlarged.addEventListener("click", (/** @type {MouseEvent} */ event) => pickPassage(enlarged, event));
  for (const step of all("[data-step]", dialog)) step.addEventListener("click", () => turn(Number(step.dataset.step)));
  dialog.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step && event.target !== field) turn(step);
  });
  dialog.addEventListener("click", (/** @type {Event} */ event) => event.target === dialog && dialog.close());
  field.addEventListener("change", () => turn(0));
  field.form.addEventListener("submit", read);
}

/** @type {(passage: HTMLElement) => void} what happens when a passage is chosen on its page */
let pick = () => {};

/** @param {(passage: HTMLElement) => void} act */
export const onPick = (act) => (pick = act);

/** Goes to the loaded passage at a point of the picture. @param {HTMLElement} view @param {MouseEvent} event @returns {boolean} whether there is one */
function pickPassage(view, { clientX, clientY }) {
  const matrix = /** @type {any} */ (one(".boxes", view)).getScreenCTM();
  const { naturalWidth: width, naturalHeight: height } = one("img", view);
  if (!matrix || !width) return false;
  const point = new DOMPoint(clientX, clientY).matrixTransform(matrix.inverse());
  const found = passageAt(Number(view.dataset.page), (point.x / width) * WHOLE, (point.y / height) * WHOLE);
  if (!found) return false;
  if (dialog.open) dialog.close();
  pick(found);
  return true;
}

/** The passage with the smallest box around a point. @param {number} number @param {number} x @param {number} y @returns {HTMLElement | undefined} */
function passageAt(number, x, y) {
  let [best, least] = [/** @type {any} */ (undefined), Infinity];
  for (const passage of all(".passage[data-boxes]")) {
    for (const [page, left, top, right, bottom] of readMarks(passage)) {
      const size = (right - left) * (bottom - top);
      if (page === number && x >= left && x <= right && y >= top && y <= bottom && size < least) [best, least] = [passage, size];
    }
  }
  return best;
}

/** Figures in the text are enlarged in their own dialog. */
function startFigures() {
  const shown = one("#figure-dialog");
  if (!shown) return;
  document.addEventListener("click", (event) => {
    const link = /** @type {any} */ (event.target).closest("[data-figure]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const image = one("img", shown);
    image.src = link.href;
    image.alt = one("img", link).alt;
    one("#figure-words").textContent = image.alt;
    shown.showModal();
  });
  shown.addEventListener("click", (/** @type {Event} */ event) => event.target === shown && shown.close());
}

/** Enlarges a page; without a number, the current one. @param {number} [number] */
export function openPicture(number) {
  if (!dialog) return;
  field.value = number || now;
  if (!dialog.open) dialog.showModal();
  turn(0);
}

/** @param {number} step */
function turn(step) {
  const number = Math.min(Math.max(Number(field.value) + step, 1), Number(field.max));
  field.value = number;
  show(enlarged, number);
}

/** Goes to the text of the page in the dialog; if it is not loaded, the form loads it. @param {Event} event */
function read(event) {
  const mark = document.getElementById(`p-${field.value}`);
  if (!mark) return;
  event.preventDefault();
  dialog.close();
  mark.scrollIntoView({ block: "start" });
  follow(Number(field.value)); // immediately, so that the next key starts from this page
}

/** Shows the current page after a short delay. @param {number} number */
export function follow(number) {
  clearTimeout(timer);
  now = number;
  if (beside) timer = setTimeout(show, FOLLOW_MS, beside, number);
}

/** @param {HTMLElement | null} passage */
export function markPassage(passage) {
  if (!beside || !passage) return;
  marks = readMarks(passage);
  clearTimeout(timer);
  const pages = marks.map(([page]) => page).filter(Boolean);
  if (pages.length && !pages.includes(now)) now = pages[0];
  show(beside, now);
}

/** @param {HTMLElement} view @param {number} number */
function show(view, number) {
  if (view.dataset.page !== String(number)) {
    view.dataset.page = String(number);
    one(".boxes", view).replaceChildren();
    const image = one("img", view);
    image.alt = t("Page %(number)s", { number });
    image.src = address(view, number);
    if (view === beside) for (const link of all(".where [data-picture]")) link.href = address(enlarged, number);
  } else draw(view);
}

/** @param {HTMLElement} view @param {number} number */
const address = (view, number) => `${dialog.dataset.pictures}/${number}.png?width=${view.dataset.width}`;

/** Draws the marks of the page. @param {HTMLElement} view */
function draw(view) {
  const { naturalWidth: width, naturalHeight: height, complete } = one("img", view);
  if (!complete || !width) return;
  const boxes = one(".boxes", view);
  boxes.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const here = marks.filter(([page]) => page === Number(view.dataset.page));
  boxes.replaceChildren(...here.map(([, left, top, right, bottom]) => rectangle(left * width, top * height, (right - left) * width, (bottom - top) * height)));
}

/** @param {...number} sides */
function rectangle(...sides) {
  const made = document.createElementNS(SVG, "rect");
  for (const [at, name] of ["x", "y", "width", "height"].entries()) made.setAttribute(name, String(sides[at] / WHOLE));
  return made;
}

/** @param {HTMLElement} view */
function bringNeighbours(view) {
  const number = Number(view.dataset.page);
  for (const next of [number + 1, number - 1]) if (next >= 1 && next <= Number(field.max)) new Image().src = address(view, next);
}
