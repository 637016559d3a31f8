// Reads a tar file in the browser: first the names and places of its files, then only the files that are needed.

const BLOCK = 512;
const WINDOW = 1 << 20;
const LONGEST_NAME = 64 << 10;
const text = new TextDecoder();

/** @typedef {{start: number, size: number}} Place */

export class DamagedArchive extends Error {}

/** Reads small parts of a file through a larger window, because each access takes about a millisecond. */
class Window {
  /** @param {Blob} file */
  constructor(file) {
    this.file = file;
    this.start = 0;
    this.bytes = new Uint8Array();
  }

  /** @param {number} start @param {number} size */
  async read(start, size) {
    if (start < this.start || start + size > this.start + this.bytes.length) {
      this.start = start;
      this.bytes = new Uint8Array(await this.file.slice(start, start + Math.max(WINDOW, size)).arrayBuffer());
    }
    return this.bytes.subarray(start - this.start, start - this.start + size);
  }
}

export class Archive {
  /** @param {Blob} file @param {Map<string, Place>} places */
  constructor(file, places) {
    this.file = file;
    this.places = places;
  }

  /** Finds all files. @param {Blob} file */
  static async open(file) {
    /** @type {Map<string, Place>} */
    const places = new Map();
    const window = new Window(file);
    let name = "";
    let size = -1;
    for (let at = 0; at + BLOCK <= file.size; ) {
      const header = await window.read(at, BLOCK);
      if (header.every((byte) => byte === 0)) break;
      check(header);
      const type = String.fromCharCode(header[156] || 48);
      const length = size >= 0 ? size : octal(header, 124, 12);
      const start = at + BLOCK;
      if (start + length > file.size) throw new DamagedArchive("incomplete");
      if ("xL".includes(type)) {
        if (length > LONGEST_NAME) throw new DamagedArchive("a name is too long");
        const body = text.decode(await window.read(start, length));
        const more = type === "L" ? { path: body.replace(/\0.*$/s, "") } : records(body);
        name = more.path ?? name;
        size = more.size ? Number(more.size) : -1;
      } else {
        if (type === "0") places.set((name || nameOf(header)).replace(/^(\.\/)+/, ""), { start, size: length });
        name = "";
        size = -1;
      }
      at = start + Math.ceil(length / BLOCK) * BLOCK;
    }
    return new Archive(file, places);
  }

  /** @param {string} name */
  has(name) {
    return this.places.has(name);
  }

  /** The content of a file, which is not read yet. @param {string} name */
  slice(name) {
    const place = this.places.get(name);
    if (!place) throw new DamagedArchive(`${name} is missing`);
    return this.file.slice(place.start, place.start + place.size);
  }

  /** @param {string} name */
  read(name) {
    return this.slice(name).text();
  }

  /** The paths of the files in a folder whose names match `ending`, in order. @param {string} folder @param {RegExp} ending */
  list(folder, ending) {
    return [...this.places.keys()].filter((name) => name.startsWith(`${folder}/`) && ending.test(name.slice(folder.length + 1))).sort();
  }
}

/** Compares the checksum of a header. @param {Uint8Array} header */
function check(header) {
  let sum = 8 * 32;
  for (let at = 0; at < BLOCK; at++) sum += at < 148 || at > 155 ? header[at] : 0;
  if (sum !== octal(header, 148, 8)) throw new DamagedArchive("not a tar file");
}

/** @param {Uint8Array} header @param {number} start @param {number} length */
function octal(header, start, length) {
  if (header[start] & 0x80) return header.subarray(start + 1, start + length).reduce((sum, byte) => sum * 256 + byte, 0);
  return parseInt(text.decode(header.subarray(start, start + length)).replace(/\0.*$/s, "").trim() || "0", 8);
}

/** @param {Uint8Array} header */
function nameOf(header) {
  const field = (/** @type {number} */ start, /** @type {number} */ length) => text.decode(header.subarray(start, start + length)).replace(/\0.*$/s, "");
  const prefix = field(257, 5) === "ustar" ? field(345, 155) : "";
  return prefix ? `${prefix}/${field(0, 100)}` : field(0, 100);
}

/** The records of an extended header: "27 path=documents/a b.txt\n". @param {string} body @returns {Record<string, string>} */
function records(body) {
  return Object.fromEntries([...body.matchAll(/\d+ ([^=\n]+)=([^\n]*)\n/g)].map(([, key, value]) => [key, value]));
}
