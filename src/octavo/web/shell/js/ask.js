// Requests to our own server; a refusal is an Error that says what people are told.

export class Refused extends Error {
  /** @param {{title?: string, detail?: string, code?: string, status?: number}} problem */
  constructor(problem) {
    super(problem.detail || problem.title || "It did not work.");
    this.title = problem.title || "It did not work.";
    this.code = problem.code || "";
    this.status = problem.status || 0;
  }

  /** The cause with its code, as rows show it. */
  get cause() {
    return this.code ? `${this.message.replace(/\.$/, "")} (${this.code})` : this.message;
  }
}

export const OFFLINE = { title: "The server does not answer. Check the connection and try again." };

/** What a refusal says, from an answer that may be anything. @param {number} status @param {string} text */
export function refusal(status, text) {
  try {
    return new Refused({ status, ...JSON.parse(text) });
  } catch {
    return new Refused({ status, title: `The server answered ${status}.` });
  }
}

/**
 * @param {string} address
 * @param {RequestInit} [options]
 * @returns {Promise<any>} the JSON of the answer, or null where there is none
 */
export async function ask(address, options = {}) {
  const answer = await reach(address, { ...options, headers: { accept: "application/json", ...options.headers } });
  const text = await answer.text();
  if (!answer.ok) throw refusal(answer.status, text);
  return text ? JSON.parse(text) : null;
}

/** A piece of a page. @param {string} address @returns {Promise<string>} */
export async function fetchPiece(address) {
  const answer = await reach(address, { headers: { accept: "text/html" } });
  if (!answer.ok) throw refusal(answer.status, "");
  return answer.text();
}

/** @param {string} address @param {RequestInit} options */
async function reach(address, options) {
  try {
    return await fetch(address, options);
  } catch {
    throw new Refused(OFFLINE);
  }
}
