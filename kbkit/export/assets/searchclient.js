// Asks the worker that searches the site.

export class SearchClient {
  /** @type {Map<number, (answer: any) => void>} */
  #waiting = new Map();
  /** @type {Worker | null} */
  #worker = null;
  #asked = 0;

  /** @param {string} address  of the worker */
  constructor(address) {
    this.address = new URL(address, location.href);
  }

  /** @param {any} message  without an answer */
  send(message) {
    if (!this.#worker) {
      this.#worker = new Worker(this.address);
      this.#worker.addEventListener("message", ({ data }) => this.#waiting.get(data.id)?.(data));
      this.#worker.addEventListener("error", () => this.#waiting.forEach((take) => take(null)));
    }
    this.#worker.postMessage(message);
  }

  /**
   * @param {any} message
   * @returns {Promise<any>} null without an answer
   */
  ask(message) {
    const id = (this.#asked += 1);
    return new Promise((resolve) => {
      this.#waiting.set(id, (answer) => {
        this.#waiting.delete(id);
        resolve(answer?.kbkit === "error" ? null : answer);
      });
      this.send({ ...message, id });
    });
  }
}
