// A form that edits a file. It stays open after a save, and asks before it drops typed text.
import { make, makeButton } from "../../export/assets/elements.js";
import { Form, labelled } from "./forms.js";

/**
 * @typedef {{path: string, text: string, version: string}} File
 * @typedef {object} Handlers
 * @property {(file: File) => Promise<import("./asking.js").Reply>} save
 * @property {() => void} close
 */

export class FileEditor extends Form {
  /**
   * @param {File} file
   * @param {Handlers} handlers
   */
  constructor(file, { save, close }) {
    const area = make("textarea", { class: "kbkit-editor", dir: "auto" });
    super(
      `Edit ${file.path}`,
      "Save",
      [labelled(`Text of ${file.path}`, "text", file.text, area)],
      {
        submit: ({ text }, over) => this.store(text, over),
        close: () => this.leave(close),
      },
    );
    this.file = file;
    this.save = save;
    /** Version that the last conflict showed; only this one is overwritten. */
    this.shown = file.version;
    /** @type {Promise<import("./asking.js").Reply> | null} */
    this.storing = null;
    this.cancel.textContent = "Close";
    this.note = make("span", { class: "kbkit-editor-note", role: "status" });
    this.element.append(" ", this.note);
    this.element.addEventListener("keydown", (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
        event.preventDefault();
        this.send(false);
      }
    });
  }

  get isChanged() {
    return this.controls[0].control.value !== this.file.text;
  }

  /**
   * Take the current version of a file from Python.
   *
   * @param {string} path
   * @param {string} version
   */
  noticed(path, version) {
    if (path === this.file.path && version !== this.file.version && !this.storing) {
      this.note.textContent = "This file was changed elsewhere. Save to compare both versions.";
    }
  }

  /**
   * @param {string} text
   * @param {boolean} over
   */
  async store(text, over) {
    this.note.textContent = "Saving…";
    this.storing = this.save({
      ...this.file,
      text,
      version: over ? this.shown : this.file.version,
    });
    const reply = await this.storing;
    this.storing = null;
    this.shown = reply.problem?.now?.version ?? this.shown;
    this.note.textContent = reply.answer ? "Saved." : "Not saved.";
    if (reply.answer) {
      this.file = { ...this.file, text, version: reply.answer.version };
    }
    return reply;
  }

  done() {
    this.focus();
  }

  /**
   * Close, or ask first if there are unsaved changes.
   *
   * @param {() => void} after
   */
  async leave(after) {
    await this.storing;
    await null; // `store` continues first
    if (!this.isChanged) {
      after();
      return;
    }
    const keep = makeButton("Save", async () => {
      await this.send(false);
      if (!this.isChanged) {
        after();
      }
    });
    const stay = makeButton("Keep editing", () => {
      this.problem.replaceChildren();
      this.focus();
    });
    const text = make("p", {}, "You have unsaved changes.");
    this.problem.replaceChildren(text, keep, " ", makeButton("Discard", after), " ", stay);
    keep.focus();
  }
}
