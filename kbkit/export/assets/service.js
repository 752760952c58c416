// Answers the messages of pages, from Material's search box and from kbkit's scripts.

import { Engine } from "./engine.js";
import { QUERY, RESULT, result } from "./material.js";
import { notice } from "./relay.js";

const SHOWN = 10; // hits that the search box shows
const PAUSE = 220; // milliseconds without a key before shards are loaded for the typed text

/**
 * A message of kbkit. `hits` or `error` with the same id answer `search`, `subjects` with similar
 * names answer `subjects`. A message `model` names the model when it is loaded; `warm` with that
 * name loads it again.
 *
 * @typedef {object} Message
 * @property {"warm" | "search" | "subjects"} kbkit
 * @property {string} [model]
 * @property {number} id
 * @property {string} query
 * @property {import("./engine.js").Options} options
 */

export class Service {
  #site;
  #engine;
  #post;
  #running = false;
  #loads = false;
  /** @type {string | null} */
  #next = null;
  #pause = Promise.resolve();
  #giveUp = () => {};

  /**
   * @param {import("./engine.js").Site} site
   * @param {import("./engine.js").Files} files
   * @param {(message: any) => void} post  sends a message to the page
   */
  constructor(site, files, post) {
    this.#site = site;
    this.#engine = new Engine(site, files, () =>
      this.#next === null ? this.#pause : Promise.reject(new Error("another key")),
    );
    this.#post = post;
  }

  /**
   * @param {Message | {type: number, data: string}} message
   */
  async answer(message) {
    if ("type" in message) {
      if (message.type === QUERY) await this.#type(message.data);
    } else if (message.kbkit === "search") {
      await this.#search(message);
    } else if (message.kbkit === "subjects") {
      await this.#suggest(message);
    } else if (message.kbkit === "warm") {
      await this.#engine.warm().catch(() => undefined); // a query reports the error
      if (message.model && message.model === this.#site.model) this.#loadModel();
    }
  }

  /** Loads the model after the first answer, or before it if the browser has it in its cache. */
  #loadModel() {
    if (this.#loads) return;
    this.#loads = true;
    this.#engine
      .loadModel()
      .then((there) => there && this.#post({ kbkit: "model", model: this.#site.model }));
  }

  /** @param {Message} message */
  async #search({ id, query, options }) {
    try {
      this.#post({ kbkit: "hits", id, hits: await this.#engine.search(query, options) });
      this.#loadModel();
    } catch (error) {
      this.#post({ kbkit: "error", id, message: String(error) });
    }
  }

  /** @param {Message} message */
  async #suggest({ id, query, options }) {
    const subjects = await this.#engine.subjects(query, options.kbs).catch(() => []);
    this.#post({ kbkit: "subjects", id, subjects });
  }

  /**
   * Answers the text in the search box; of texts typed meanwhile, only the last. Shows loaded
   * results immediately; loads shards only after a pause, not for each letter.
   *
   * @param {string} query
   */
  async #type(query) {
    this.#next = query;
    this.#giveUp();
    this.#pause = this.#paused();
    if (this.#running) return;
    this.#running = true;
    while (this.#next !== null) {
      const text = this.#next;
      this.#next = null;
      const data = await this.#found(text);
      if (this.#next === null) this.#post({ type: RESULT, data, query: text });
    }
    this.#running = false;
  }

  /** Fulfilled after a pause without typing, rejected if typing continues. */
  #paused() {
    /** @type {Promise<void>} */
    const pause = new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, PAUSE);
      this.#giveUp = () => {
        clearTimeout(timer);
        reject(new Error("another key"));
      };
    });
    pause.catch(() => undefined); // possibly without a handler
    return pause;
  }

  /** @param {string} query */
  async #found(query) {
    try {
      const hits = await this.#engine.search(query, { typing: true, limit: SHOWN });
      if (query.trim()) this.#loadModel();
      return result(query, hits, this.#site.kbs.length > 1);
    } catch {
      return notice(
        "The search index could not be read",
        "Are you offline, or was the site just renewed? Reload the page and search again.",
      );
    }
  }
}
