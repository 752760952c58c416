// A file editor that loses no typed text: it asks before it closes, and shows both versions side by
// side if the file changed elsewhere.
import { make, makeButton } from "../../export/assets/elements.js";

/**
 * @typedef {{path: string, text: string, version: string}} File
 * @typedef {object} Handlers
 * @property {(file: File) => Promise<import("./asking.js").Reply>} save
 * @property {() => void} close
 */

export class FileEditor {
  /**
   * @param {File} file
   * @param {Handlers} handlers
   */
  constructor(file, { save, close }) {
    this.file = file;
    this.save = save;
    this.close = close;
    /** @type {Promise<import("./asking.js").Reply> | null} */
    this.storing = null;
    /** @type {HTMLElement | null} the conflicting version */
    this.theirs = null;
    /** @type {HTMLElement | null} */
    this.label = null;
    this.area = make("textarea", {
      class: "kbkit-editor",
      dir: "auto",
      "aria-label": `Text of ${file.path}`,
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKeydown(event),
    });
    this.area.value = file.text;
    this.saving = makeButton("Save", () => this.store());
    this.saving.classList.add("kbkit-primary");
    this.saving.title = "Ctrl+S";
    const cancel = makeButton("Close", () => this.leave(close));
    cancel.title = "Escape";
    this.note = make("span", { class: "kbkit-editor-note", role: "status" });
    const tools = make("div", { class: "kbkit-tools" }, this.saving, cancel, this.note);
    this.question = make("div", { class: "kbkit-editor-question" });
    const name = make("h3", { class: "kbkit-article-title" }, make("bdi", {}, file.path));
    this.mine = make("div", { class: "kbkit-editor-side" }, this.area);
    this.sides = make("div", { class: "kbkit-editor-sides" }, this.mine);
    this.element = make(
      "section",
      { class: "kbkit-article kbkit-editing", "aria-label": `Edit ${file.path}` },
      [name, tools, this.question, this.sides],
    );
  }

  focus() {
    this.area.focus();
  }

  get isChanged() {
    return this.area.value !== this.file.text;
  }

  /**
   * Take the current version of a file from Python.
   *
   * @param {string} path
   * @param {string} version
   */
  noticed(path, version) {
    const known = this.storing || this.theirs || version === this.file.version;
    if (path === this.file.path && !known) {
      this.note.textContent = "This file was changed elsewhere. Save to compare both versions.";
    }
  }

  /** @param {KeyboardEvent} event */
  onKeydown(event) {
    event.stopPropagation(); // hides keys from the notebook
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s") {
      event.preventDefault();
      this.store();
    } else if (event.key === "Escape") {
      this.leave(this.close);
    }
  }

  /**
   * @param {() => void} [after]  runs after a successful save
   * @param {string} [path]  another file to save to
   */
  async store(after, path) {
    const text = this.area.value;
    const { file } = this;
    this.note.textContent = "Saving…";
    const other = path !== undefined && path !== file.path;
    const to = { path: path ?? file.path, text, version: other ? "" : file.version };
    this.storing = this.save(to);
    const { answer, problem } = await this.storing;
    this.storing = null;
    if (problem?.now) {
      this.note.textContent = "Not saved.";
      this.showBoth(problem.now);
      return;
    }
    if (problem) {
      this.note.textContent = `Not saved: ${problem.text}`;
      return;
    }
    if (other) {
      this.close();
      return;
    }
    this.file = { path: file.path, text, version: answer.version };
    this.showMine();
    this.note.textContent = "Saved.";
    after?.();
  }

  /**
   * Close, or ask first if there are unsaved changes.
   *
   * @param {() => void} after
   */
  async leave(after) {
    if (this.storing) {
      await this.storing;
      await null; // `store` continues first
    }
    if (!this.isChanged) {
      after();
      return;
    }
    const stay = makeButton("Keep editing", () => {
      this.question.replaceChildren();
      this.focus();
    });
    const keep = makeButton("Save", () => this.store(after));
    this.ask("You have unsaved changes.", keep, makeButton("Discard", after), stay);
    keep.focus();
  }

  /**
   * @param {string} text
   * @param {...HTMLElement} buttons
   */
  ask(text, ...buttons) {
    const tools = make("div", { class: "kbkit-tools" }, buttons);
    const box = make("div", { class: "kbkit-dialog", role: "group", "aria-label": text }, make("p", {}, text), tools); // prettier-ignore
    this.question.replaceChildren(box);
  }

  /** Remove the other version and the question. */
  showMine() {
    this.question.replaceChildren();
    if (this.theirs) {
      this.theirs.parentElement?.remove();
      this.label?.remove();
      this.theirs = this.label = null;
    }
    this.focus();
  }

  /**
   * Show both versions of a file that changed elsewhere, until the reader chooses.
   *
   * @param {Record<string, any>} now  the current version
   */
  showBoth(now) {
    const { path } = this.file;
    const theirs = make("textarea", { class: "kbkit-editor", dir: "auto", "aria-label": `Current version of ${path}` }); // prettier-ignore
    theirs.value = now.text;
    theirs.readOnly = true;
    this.showMine();
    this.theirs = theirs;
    const label = (/** @type {string} */ text) => make("p", { class: "kbkit-editor-label" }, text);
    const gone = now.version === "" ? "Deleted or moved elsewhere" : "Current version";
    this.label = label("Your version");
    this.area.before(this.label);
    this.sides.append(make("div", { class: "kbkit-editor-side" }, label(gone), theirs));
    const over = makeButton("Overwrite with mine", () => {
      this.file = { ...this.file, version: now.version };
      this.store();
    });
    over.title = "Undo restores the other version";
    const copy = copyOf(path);
    const both = makeButton(`Keep both: save mine as ${copy}`, () => this.store(undefined, copy));
    const take = makeButton("Use theirs", () => {
      this.file = { path, text: now.text, version: now.version };
      this.focus();
      this.area.select();
      // so that Ctrl+Z restores the reader's text
      if (!document.execCommand("insertText", false, now.text)) {
        this.area.value = now.text;
      }
      this.showMine();
      this.note.textContent = "Ctrl+Z restores your version.";
    });
    this.ask("This file was changed elsewhere. Nothing is saved yet.", over, both, take);
    over.focus();
  }
}

/**
 * A path next to a file, for its other version.
 *
 * @param {string} path
 */
function copyOf(path) {
  const dot = path.lastIndexOf(".");
  const end = dot > path.lastIndexOf("/") + 1 ? dot : path.length;
  const now = new Date().toISOString().slice(0, 19).replaceAll(":", "-");
  return `${path.slice(0, end)} (mine ${now})${path.slice(end)}`;
}
