// Uploads: three files are sent in parallel, and a failure does not stop the others.

import { bytes, canWrite, icon, make, one, t } from "./dom.js";
import { RequestError } from "./request.js";
import { claim, insert, takesNew } from "./arrivals.js";
import { addToDock, handOver, leaveDock, showRing, sweep } from "./dock.js";
import { wake } from "./live.js";
import { fetchRows, list, refresh } from "./patch.js";
import { Transfer } from "./transfer.js";
import { announce, toast } from "./toast.js";

const TOGETHER = 3;

/** @type {Transfer[]} in the order they were added */
let transfers = [];
/** @type {WeakMap<Transfer, {item: HTMLElement, row: HTMLElement | null}>} */
const places = new WeakMap();

export function startUploads() {
  const input = one("#files");
  if (!input) return;
  input.multiple = true;
  input.addEventListener("change", () => {
    upload([...input.files]);
    input.value = "";
  });
  addEventListener("beforeunload", (event) => transfers.some((one) => one.isOpen) && event.preventDefault());
}

/** @param {File[]} files */
export function upload(files) {
  if (!files.length) return;
  if (!canWrite()) return toast(t("You have read-only access here."), { tone: "bad" });
  const options = readOptions(files.length);
  if (files.length > 5 && crypto.randomUUID) options.import_id = crypto.randomUUID();
  const added = files.map((file) => new Transfer(file, options));
  clearOptions();
  transfers.push(...added);
  const made = added.map(givePlace);
  addToDock(made.map(({ item }) => item));
  const rows = made.map(({ row }) => row).filter((row) => row !== null);
  if (rows.length) insert(...rows.reverse());
  for (const transfer of added) check(transfer);
  wake();
  for (let lane = 0; lane < TOGETHER; lane++) next();
}

/** Files that are too large are not sent; the server checks everything else. @param {Transfer} transfer */
function check(transfer) {
  const { uploadBytes, uploadLimit } = document.body.dataset;
  const { size } = transfer.file;
  if (Number(uploadBytes) && size > Number(uploadBytes)) {
    transfer.fail(new RequestError({ detail: t("The file is %(size)s. The limit is %(limit)s.", { size: bytes(size), limit: uploadLimit ?? "" }), code: "TOO_LARGE" }));
  }
}

async function next() {
  const transfer = transfers.find((one) => one.state === "waiting");
  if (!transfer || transfers.filter((one) => one.state === "sending").length >= TOGETHER) return;
  await transfer.send();
  next();
}

// Display -----------------------------------------------------------------------------------------------------------

/** Creates its item in the dock and, if the list shows new documents, its row. @param {Transfer} transfer */
function givePlace(transfer) {
  const place = { item: make("li", { class: "dock-item working" }), row: takesNew() ? make("li", { class: "row working sending" }) : null };
  places.set(transfer, place);
  transfer.addEventListener("change", () => show(transfer));
  transfer.addEventListener("change", () => follow(transfer));
  show(transfer);
  return place;
}

/** @param {Transfer} transfer */
function show(transfer) {
  const place = places.get(transfer);
  if (!place) return;
  if (!update(transfer, place.item)) drawItem(transfer, place.item);
  if (place.row?.isConnected === false && transfer.sent) return; // the list was replaced
  if (place.row && !update(transfer, place.row)) drawRow(transfer, place.row);
}

/** While sending, only the numbers change. @param {Transfer} transfer @param {HTMLElement} element */
function update(transfer, element) {
  const bar = one("progress", element);
  if (transfer.state !== "sending" || element.dataset.state !== "sending" || !bar) return false;
  bar.value = transfer.sent;
  one(".far", element).textContent = share(transfer);
  return true;
}

/** @param {Transfer} transfer */
const share = ({ sent, file }) => (file.size ? `${Math.floor((100 * sent) / file.size)} %` : "");

/** @param {Transfer} transfer */
function words(transfer) {
  if (transfer.state === "waiting") return t("Waiting to upload");
  if (transfer.state === "sending") return t("Uploading");
  if (transfer.state === "twin") return t("Already here");
  if (transfer.state === "cancelled") return t("Cancelled");
  return transfer.error ? transfer.error.cause : t("Waiting");
}

/** @param {Transfer} transfer */
function bar(transfer) {
  return make("progress", { max: transfer.file.size || 1, value: transfer.state === "sending" ? transfer.sent : 0, "aria-label": transfer.file.name });
}

/** @param {Transfer} transfer @param {HTMLElement} item */
function drawItem(transfer, item) {
  const { name } = transfer.file;
  const button = (/** @type {string} */ glyph, /** @type {string} */ label, /** @type {() => void} */ click) =>
    make("button", { class: "button plain tiny", type: "button", "aria-label": `${label} ${name}`, title: label, click }, icon(glyph));
  const failed = transfer.state === "failed";
  item.dataset.state = transfer.state;
  item.className = `dock-item ${failed ? "failed" : "working"}`;
  item.replaceChildren(
    make(
      "div",
      { class: "top" },
      make("span", { class: "name cut" }, name),
      failed && transfer.error?.code !== "TOO_LARGE" ? button("again", t("Try again"), () => again(transfer)) : null,
      transfer.isOpen ? button("close", t("Cancel"), () => transfer.cancel()) : failed ? button("close", t("Remove"), () => forget(transfer)) : null,
    ),
    failed ? make("span", { class: "hush" }, t("Not added")) : bar(transfer),
    make("div", { class: "what" }, make("span", { class: failed ? "" : "cut" }, words(transfer)), make("span", { class: "quiet numbers far" }, transfer.state === "sending" ? share(transfer) : "")),
  );
}

/** @param {Transfer} transfer @param {HTMLElement} row */
function drawRow(transfer, row) {
  const { file, state, error, outcome } = transfer;
  const failed = state === "failed";
  row.dataset.state = state;
  row.className = `row sending${failed ? " failed" : transfer.isOpen ? " working" : ""}`;
  const title = make("span", { class: "title cut" }, file.name);
  const chip = (/** @type {string} */ tone, /** @type {string} */ glyph, /** @type {string} */ word, /** @type {string} */ line) => [
    make("span", { class: `chip ${tone}` }, icon(glyph), word),
    make("span", { class: "cause small" }, line),
  ];
  const states = {
    waiting: () => chip("", "clock", t("Waiting"), t("Not sent yet")),
    failed: () => chip("bad", "error", t("Not added"), error?.cause ?? ""),
    twin: () => chip("", "twins", t("Already here"), t("Same file as another document")),
    cancelled: () => chip("", "close", t("Cancelled"), t("Stopped by you")),
    sending: () => [make("div", { class: "bar-line" }, make("span", {}, t("Uploading")), make("span", { class: "quiet numbers far" }, share(transfer))), bar(transfer)],
    done: () => chip("", "clock", t("Waiting"), ""),
  };
  const verb = (/** @type {string} */ label, /** @type {() => void} */ click, plain = "") => make("button", { class: `button${plain}`, type: "button", click }, label);
  const cancel = () => [verb(t("Cancel"), () => transfer.cancel(), " plain")];
  const verbs = {
    waiting: cancel,
    sending: cancel,
    failed: () => (error?.status || error?.code ? [verb(t("Choose another"), () => (forget(transfer), one("#files").click()))] : [verb(t("Try again"), () => again(transfer))]),
    twin: () => [make("a", { class: "button", href: `/documents/${outcome?.duplicate_of}` }, t("Open it")), verb(t("Keep both"), () => keepBoth(transfer), " plain")],
    cancelled: () => [verb(t("Start again"), () => again(transfer))],
    done: () => [],
  };
  row.replaceChildren(
    make("span", { class: "pick" }),
    make("span", { class: "picture", "aria-hidden": "true" }, ending(file.name)),
    make("div", { class: "what" }, title, make("div", { class: "about cut" }, transfer.isOpen || state === "done" ? make("span", { class: "skeleton" }) : "")),
    make("div", { class: "size" }, make("span", { class: "numbers" }, "—"), make("span", { class: "small quiet" }, bytes(file.size))),
    make("span", { class: "added" }, t("Just now")),
    make("div", { class: "state" }, ...states[state]()),
    make("div", { class: "verb" }, ...verbs[state]()),
    make("span", { class: "menu" }),
  );
}

/** @param {string} name */
const ending = (name) => (name.includes(".") ? name.slice(name.lastIndexOf(".") + 1) : "").toUpperCase().slice(0, 5);

// After an upload ---------------------------------------------------------------------------------------------------

/** @param {Transfer} transfer */
function follow(transfer) {
  if (transfer.isOpen) return;
  const item = places.get(transfer)?.item;
  if (item && transfer.state === "done" && transfer.outcome) handOver(item, transfer.outcome);
  else if (item && transfer.state !== "failed") leaveDock(item);
  if (transfer.state === "done") settleRow(transfer);
  if (transfer.state === "twin") tellTwin(transfer);
  if (transfer.state === "failed") announce(t("%(name)s was not added.", { name: transfer.file.name }));
  if (transfer.state !== "failed") transfers = transfers.filter((one) => one !== transfer);
  showRing();
}

/** The row of the upload becomes the row of the document. @param {Transfer} transfer */
async function settleRow(transfer) {
  const place = places.get(transfer);
  const id = transfer.outcome?.document_id;
  if (!id) return;
  claim(id);
  if (place?.row) {
    place.row.id = `d-${id}`; // from here on it is updated like any other row
    place.row.dataset.document = id;
    place.row.dataset.status = "pending";
  }
  settled.push(id);
  if (settled.length === 1) setTimeout(exchangeRows, 100);
}

/** @type {string[]} */
let settled = [];

async function exchangeRows() {
  const ids = settled.splice(0);
  if (!list()) return refresh(...ids);
  try {
    const rows = await fetchRows(ids.slice(0, 100));
    for (const [id, row] of rows) one(`#d-${CSS.escape(id)}.sending`)?.replaceWith(row);
  } finally {
    refresh(...ids);
  }
}

/** @param {Transfer} transfer */
function tellTwin(transfer) {
  const href = `/documents/${transfer.outcome?.duplicate_of}`;
  toast(t("Already here: %(name)s", { name: transfer.file.name }), { verb: t("Open it"), href });
}

/** @param {Transfer} transfer */
function again(transfer) {
  const place = places.get(transfer);
  if (place && !place.item.isConnected) addToDock([(place.item = make("li", { class: "dock-item" }))]);
  if (!transfers.includes(transfer)) transfers.push(transfer);
  transfer.error = null;
  transfer.sent = 0;
  transfer.become("waiting");
  wake();
  next();
}

/** @param {Transfer} transfer */
function keepBoth(transfer) {
  transfer.options = { ...transfer.options, duplicates: "new" };
  again(transfer);
}

/** @param {Transfer} transfer */
function forget(transfer) {
  transfers = transfers.filter((one) => one !== transfer);
  const place = places.get(transfer);
  place?.item.remove();
  place?.row?.remove();
  sweep();
}

// The options of the add box, for everything that is added on this page ---------------------------------------------

const NAMES = ["title", "source", "duplicates", "extraction", "collection"];

/** @param {string} name @returns {HTMLInputElement | HTMLSelectElement | null} */
const field = (name) => one(`[data-add-box] [name="${name}"]`);

/** The options that are set. A title is for one document only. @param {number} count @returns {Record<string, string>} */
export function readOptions(count) {
  const given = NAMES.map((name) => [name, field(name)?.value.trim() ?? ""]);
  return Object.fromEntries(given.filter(([name, value]) => value && (name !== "title" || count === 1)));
}

/** Title and source belong to what was just added; the other options stay. */
export function clearOptions() {
  for (const name of NAMES.slice(0, 2)) {
    const shown = field(name);
    if (shown) shown.value = "";
  }
}
