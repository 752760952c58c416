// Views that send numbered requests to Python.
import { View } from "./dom.js";

/**
 * @typedef {{text: string, field: string, now: Record<string, any> | null}} Problem
 * @typedef {{answer?: any, problem?: Problem}} Reply
 */

export class AskingView extends View {
  /**
   * @param {import("./dom.js").Model} model
   * @param {HTMLElement} el
   */
  constructor(model, el) {
    super(model, el);
    /** @type {Map<number, (reply: Reply) => void>} */
    this.waiting = new Map();
    this.asked = 0;
    this.on("msg:custom", (message) => this.receive(message));
  }

  /**
   * Ask Python.
   *
   * @param {string} what
   * @param {Record<string, any>} values
   * @returns {Promise<Reply>}
   */
  ask(what, values) {
    const number = (this.asked += 1);
    return new Promise((resolve) => {
      this.waiting.set(number, resolve);
      if (!this.send("ask", { ...values, what, number })) {
        this.waiting.delete(number);
        resolve({ problem: { text: "The kernel has stopped.", field: "", now: null } });
      }
    });
  }

  /** @param {any} message */
  receive(message) {
    const resolve = this.waiting.get(message.number);
    this.waiting.delete(message.number);
    resolve?.(message);
  }
}
