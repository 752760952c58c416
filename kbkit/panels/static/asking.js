// A view that changes something: its requests to Python are numbered, and each gets a reply.
import { make, makeButton } from "../../export/assets/elements.js";
import { View } from "./dom.js";

/**
 * @typedef {{text: string, field: string, now: Record<string, any> | null}} Problem
 * @typedef {{answer?: any, problem?: Problem}} Reply
 */

const LOOK = 2000; // milliseconds between checks for outside changes

/** A view with a button to undo changes, and places for problems and forms. */
export class EditingView extends View {
  /** @param {import("./dom.js").Widget} widget */
  constructor(widget) {
    super(widget);
    /** @type {Map<number, (reply: Reply) => void>} */
    this.waiting = new Map();
    this.asked = 0;
    this.on("msg:custom", (message) => this.receive(message));
    this.undo = makeButton("Undo", () => this.change("undo"));
    this.problemLine = make("p", { class: "kbkit-field-problem", role: "alert", hidden: true });
    this.place = make("div");
    this.looking = false;
    const { signal } = this.ended;
    const timer = window.setInterval(() => this.look(), LOOK);
    signal.addEventListener("abort", () => clearInterval(timer));
    window.addEventListener("focus", () => this.look(), { signal });
  }

  /** Have Python check for changes by other panels and processes, while this is visible. */
  async look() {
    const isVisible = document.visibilityState === "visible" && this.el.isConnected;
    if (isVisible && !this.looking && this.el.offsetParent) {
      this.looking = true; // a busy kernel is not asked twice
      await this.ask("look", {});
      this.looking = false;
    }
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
      if (!this.send(what, { ...values, number })) {
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

  /** @param {string} what  the action to undo, or "" */
  drawUndo(what) {
    this.undo.disabled = !what;
    this.undo.title = what ? `Undo: ${what}` : "Nothing to undo";
  }

  /**
   * Send a change to Python; a problem without a field appears above.
   *
   * @param {string} what
   * @param {Record<string, any>} [values]
   */
  async change(what, values = {}) {
    const reply = await this.ask(what, values);
    const { problem } = reply;
    this.problemLine.textContent = problem && !problem.field && !problem.now ? problem.text : "";
    this.problemLine.hidden = this.problemLine.textContent === "";
    return reply;
  }
}
