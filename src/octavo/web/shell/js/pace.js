// Keeps a piece of a page fresh while somebody looks: not too often, never two questions at once, and never with an
// answer that is older than what happened last.

/**
 * Who asks while an answer is on its way may mean what it does not tell yet, so another one follows.
 * @param {() => Promise<unknown>} work
 * @param {number} least milliseconds from the end of one to the beginning of the next
 * @returns {() => void} asks for it
 */
export function paced(work, least) {
  let last = -least;
  let timer = 0;
  let isBusy = false;
  let again = false;
  const plan = () => {
    if (isBusy) again = true;
    else if (!timer && !document.hidden) timer = setTimeout(run, Math.max(0, last + least - performance.now()));
  };
  const run = async () => {
    timer = 0;
    isBusy = true;
    again = false;
    try {
      await work();
    } catch {
      // The server is away for a moment; whatever happens next asks again.
    }
    last = performance.now();
    isBusy = false;
    if (again) plan();
  };
  document.addEventListener("visibilitychange", plan);
  return plan;
}
