// Files and folders dropped anywhere on the page.

import { canWrite, make, one, t } from "./dom.js";
import { upload } from "./upload.js";
import { complain } from "./toast.js";

const NOISE = /^(\.|Thumbs\.db$|desktop\.ini$)/i;

/** @type {HTMLElement | null} */
let overlay = null;

export function startDropping() {
  if (!canWrite()) return;
  addEventListener("dragenter", (event) => hasFiles(event) && show());
  addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    if (event.dataTransfer) event.dataTransfer.dropEffect = "copy";
    show();
  });
  addEventListener("dragleave", (event) => event.relatedTarget === null && hide());
  for (const end of ["dragend", "blur"]) addEventListener(end, hide);
  addEventListener("keydown", (event) => event.key === "Escape" && hide());
  addEventListener("drop", (event) => {
    hide();
    if (!hasFiles(event) || !event.dataTransfer) return;
    event.preventDefault();
    // Both are only available during the event.
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry);
    const files = [...event.dataTransfer.files];
    if (!entries.some((entry) => entry?.isDirectory)) return take(files);
    collect(entries).then(take, complain);
  });
}

/** The element of this page that handles dropped files, if there is one. */
const user = () => one("[data-drops]");

/** @param {File[]} files */
function take(files) {
  if (user()) user().dispatchEvent(new CustomEvent("dropped", { detail: files }));
  else upload(files);
}

/** @param {DragEvent} event */
const hasFiles = (event) => event.dataTransfer?.types.includes("Files") ?? false;

function show() {
  if (overlay) return;
  overlay = make("div", { class: "dropping", "aria-hidden": "true" }, user()?.dataset.drops ?? t("Drop to add"));
  document.body.append(overlay);
}

function hide() {
  overlay?.remove();
  overlay = null;
}

/** All files in these folders, recursively. @param {any[]} entries @returns {Promise<File[]>} */
export async function collect(entries) {
  /** @type {File[]} */
  const files = [];
  for (const entry of entries) {
    if (entry.isFile && !NOISE.test(entry.name)) files.push(await new Promise((found, failed) => entry.file(found, failed)));
    else if (entry.isDirectory && !NOISE.test(entry.name)) files.push(...(await collect(await readFolder(entry))));
  }
  return files;
}

/** A reader returns entries in batches; an empty batch is the end. @param {any} folder @returns {Promise<any[]>} */
async function readFolder(folder) {
  const reader = folder.createReader();
  const entries = [];
  for (;;) {
    const piece = await new Promise((found, failed) => reader.readEntries(found, failed));
    if (!piece.length) return entries;
    entries.push(...piece);
  }
}
