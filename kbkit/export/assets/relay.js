// Receives the messages of Material's search box and of kbkit's scripts, in a worker or, without a
// server, in the page. Starts the engine with the first message that needs it.

/** @typedef {{answer(message: any): Promise<void>}} Service */

export class Relay {
  /** @type {Promise<Service> | null} */
  #service = null;
  #start;
  #post;

  /**
   * @param {() => Promise<Service>} start
   * @param {(message: any) => void} post  sends a message to the page
   */
  constructor(start, post) {
    this.#start = start;
    this.#post = post;
  }

  /** @param {any} message */
  async receive(message) {
    if (message.type === 0) {
      this.#post({ type: 1 });
    } else if (message.type === 2 && !message.data && !this.#service) {
      this.#post({ type: 3, data: { items: [] } });
    } else {
      try {
        this.#service ??= this.#start();
        const service = await this.#service;
        service.answer(message);
      } catch (error) {
        this.#service = null; // the next message tries again
        this.#fail(message, String(error));
      }
    }
  }

  /**
   * @param {any} message
   * @param {string} error
   */
  #fail(message, error) {
    if (message.kbkit) {
      this.#post({ kbkit: "error", id: message.id, message: error });
    } else {
      const text = "Are you offline? Search again once you are not.";
      this.#post({ type: 3, data: notice("Search is out of reach", text) });
    }
  }
}

/**
 * A notice instead of results.
 *
 * @param {string} title
 * @param {string} text
 */
export function notice(title, text) {
  return { items: [[{ location: "search/", title, text, score: 1, terms: {} }]] };
}
