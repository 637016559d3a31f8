// Paste anywhere: files are uploaded, a link or text fills the box and waits for Enter. Pasting into a field is not changed.

import { canWrite, isField, make, one, t } from "./dom.js";
import { request } from "./request.js";
import { claim, insert } from "./arrivals.js";
import { openDialog } from "./dialog.js";
import { wake } from "./live.js";
import { fetchRows, refresh, rowOf } from "./patch.js";
import { complain, toast } from "./toast.js";
import { clearOptions, readOptions, upload } from "./upload.js";

// Longer texts are uploaded as a file.
const MOST_CHARACTERS = 200_000;

export function startPasting() {
  if (!canWrite()) return;
  addEventListener("paste", (event) => {
    if (isField(event.target) || !event.clipboardData) return;
    const files = [...event.clipboardData.files];
    const text = event.clipboardData.getData("text/plain").trim();
    if (files.length) upload(files);
    else if (text) offer(text);
    else return;
    event.preventDefault();
  });
  const form = one("form[data-add-box]");
  if (form) listen(form);
}

/** @param {string} text */
function offer(text) {
  const box = one("#paste") ?? openBox();
  box.value = text;
  box.focus();
  box.setSelectionRange(text.length, text.length);
}

/** Opens a dialog with the box and its options, on pages without it. */
export function openBox() {
  const form = one("#quick-add").content.firstElementChild.cloneNode(true);
  const dialog = openDialog(t("Add a link or text"), [make("h2", {}, t("Add a link or text")), form]);
  form.addEventListener("added", () => dialog.close());
  listen(form);
  return /** @type {HTMLTextAreaElement} */ (one("textarea", form));
}

/** @param {HTMLFormElement | any} form */
function listen(form) {
  const box = one("textarea", form);
  box.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (box.value.trim()) form.requestSubmit();
  });
  form.addEventListener("submit", (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    send(form, box);
  });
}

/** @param {HTMLFormElement} form @param {HTMLTextAreaElement} box */
async function send(form, box) {
  const text = box.value;
  if (!text.trim() || box.readOnly) return;
  if (text.length > MOST_CHARACTERS) {
    upload([new File([text], "Pasted text.txt", { type: "text/plain" })]);
    box.value = "";
    return; // `upload` reads the options of the box
  }
  box.readOnly = true; // until the first request is done
  try {
    const [outcome] = await request("/actions/add", { method: "POST", body: new URLSearchParams({ ...readOptions(1), text }) });
    box.value = "";
    clearOptions();
    form.dispatchEvent(new Event("added"));
    await welcome([outcome]);
  } catch (error) {
    complain(error);
  } finally {
    box.readOnly = false;
  }
}

/** Shows documents added in this tab. @param {import("./transfer.js").Outcome[]} outcomes */
export async function welcome(outcomes) {
  wake();
  const fresh = outcomes.filter((outcome) => outcome.state !== "deduplicated").map((outcome) => outcome.document_id);
  fresh.forEach(claim);
  for (const twin of outcomes.filter((outcome) => outcome.state === "deduplicated")) {
    toast(t("Already here"), { verb: t("Open it"), href: `/documents/${twin.duplicate_of}` });
  }
  if (fresh.length && one("#documents")) {
    const rows = await fetchRows(fresh);
    insert(...[...rows.values()].filter((row) => !rowOf(row.dataset.document ?? "")));
  } else if (fresh.length) toast(t("Added"), { verb: t("Open the library"), href: "/library" });
  refresh(...fresh);
}
