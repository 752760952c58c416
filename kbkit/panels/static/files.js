// The files of a workspace: tree, open file and editing.
import { make, makeButton } from "../../export/assets/elements.js";
import { EditingView } from "./asking.js";
import { widgetOf } from "./dom.js";
import { FileEditor } from "./file_editor.js";
import { labelled, showForm } from "./forms.js";
import { Reader } from "./reader.js";
import { Tree } from "./tree.js";

/**
 * @typedef {import("./tree.js").Row} Row
 * @typedef {import("./reader.js").Text & About} State
 * @typedef {object} About
 * @property {string} title  name of the file that is open, or ""
 * @property {string} path
 * @property {string} version
 * @property {string} badge
 * @property {string[]} facts
 * @property {string[]} backlinks  paths of files that link here
 * @property {boolean} editable
 * @property {boolean | null} as_text  whether it is shown as text; null without a choice
 * @property {boolean} back  whether another file was open before
 * @property {string} undo  the action to undo
 * @property {string} note  a note on the file, or a hint if none is open: then the state has only
 *     title, path, version, serial, back, undo and this
 */

const MISSING = "#missing-";

class FilesView extends EditingView {
  /** @param {import("./dom.js").Widget} widget */
  constructor(widget) {
    super(widget);
    /** @type {Row | undefined} */
    this.row = undefined;
    /** @type {FileEditor | null} */
    this.editor = null;
    /** @type {State} */
    this.state = this.model.get("state");
    this.rename = makeButton("Rename…", () => this.askMove());
    this.remove = makeButton("Delete", () => this.removeRow());
    const createButtons = [
      makeButton("New file…", () => this.askNew("file")),
      makeButton("New folder…", () => this.askNew("folder")),
    ];
    const tools = make(
      "div",
      { class: "kbkit-tools" },
      createButtons,
      this.rename,
      this.remove,
      this.undo,
    );
    const treeBox = make("div", { class: "kbkit-tree-room" });
    const left = make("div", { class: "kbkit-documents-left" }, treeBox);
    this.back = makeButton("Back", () => this.send("back"));
    this.edit = makeButton("Edit", () => this.startEditing());
    this.asText = makeButton("As text", () => this.ask("as_text", { on: !this.state.as_text }));
    this.title = make("h3", { class: "kbkit-article-title", dir: "auto" });
    this.facts = make("div", { class: "kbkit-where" });
    this.note = make("p", { class: "kbkit-tree-note" });
    this.reader = new Reader((href) => this.follow(href));
    this.reader.text.addEventListener("click", (event) => this.onMissing(event));
    this.backlinks = make("nav", { class: "kbkit-backlinks", "aria-label": "Backlinks" });
    const buttons = make("div", { class: "kbkit-tools" }, this.edit, this.asText, this.back);
    this.header = make("header", {}, this.title, this.facts, buttons);
    this.article = make(
      "article",
      { class: "kbkit-article kbkit-cards" },
      this.header,
      this.note,
      this.reader.page,
      this.backlinks,
    );
    this.room = make("div", { class: "kbkit-files-room" });
    const right = make("div", { class: "kbkit-documents-right" }, this.article, this.room);
    const columns = make("div", { class: "kbkit-documents-both" }, left, right);
    const root = make(
      "div",
      { "data-lm-suppress-shortcuts": "true" },
      tools,
      this.problemLine,
      this.place,
    );
    root.append(columns);
    this.el.replaceChildren(root);
    this.tree = new Tree(treeBox, this.ended.signal, {
      children: async (folder) => {
        const { answer } = await this.ask("children", { folder });
        this.whenReleased(() => this.tree.receive({ folder, rows: answer?.rows ?? [] }));
      },
      select: (path) => this.leaveEditor(() => this.send("select", { path })),
      look: () => this.look(),
      activate: (row) => this.activate(row),
      key: (key) => this.onTreeKey(key),
    });
    this.drawOn("tree", () =>
      this.tree.draw({ ...this.model.get("tree"), rows: this.model.get("roots") }),
    );
    this.drawOn("state", () => this.draw());
  }

  draw() {
    this.state = this.model.get("state");
    const { state } = this;
    const isOpen = state.title !== "";
    this.header.hidden = !isOpen;
    this.reader.page.hidden = !isOpen;
    this.note.hidden = state.note === "";
    this.note.textContent = state.note;
    this.back.disabled = !state.back;
    this.drawUndo(state.undo);
    this.editor?.noticed(state.path, state.version);
    this.backlinks.hidden = !isOpen || state.badge !== "";
    if (!isOpen) {
      return;
    }
    this.title.replaceChildren(make("bdi", {}, state.title));
    const facts = state.facts.map((fact) => make("span", {}, fact));
    const badge = state.badge && make("span", { class: "kbkit-badge" }, state.badge);
    const place = make("bdi", { class: "kbkit-place", title: state.path }, state.path);
    this.facts.replaceChildren(place, badge, ...facts);
    this.edit.hidden = !state.editable;
    this.asText.hidden = state.as_text === null;
    this.asText.setAttribute("aria-pressed", String(state.as_text === true));
    this.reader.show(state);
    this.drawBacklinks();
  }

  drawBacklinks() {
    const { backlinks } = this.state;
    const link = (/** @type {string} */ path) =>
      makeButton(make("bdi", {}, path), () => this.send("select", { path }), {
        class: "kbkit-link",
      });
    const items = backlinks.map((path) => make("li", {}, link(path)));
    const none = make("span", {}, "nothing links here");
    const label = make("b", {}, "Linked from");
    this.backlinks.replaceChildren(label, " ", items.length ? make("ul", {}, items) : none);
  }

  // Changes

  /** @param {Row | undefined} row */
  activate(row) {
    this.row = row;
    const isFixed = !row || isShown(row);
    this.rename.disabled = isFixed;
    this.remove.disabled = isFixed;
    this.rename.title = row ? `Rename or move ${row.id}, or press F2` : "";
    this.remove.title = row ? `Put ${row.id} into the trash, or press Delete` : "";
  }

  /** @param {string} key */
  onTreeKey(key) {
    if (key === "F2") {
      this.askMove();
    } else if (key === "Delete") {
      this.removeRow();
    } else {
      return false;
    }
    return true;
  }

  /** The folder for new items, with a trailing slash: that of the active row. */
  folder() {
    if (!this.row || isShown(this.row)) {
      return "";
    }
    const { id } = this.row;
    const folder =
      this.row.count !== undefined ? id : id.slice(0, Math.max(0, id.lastIndexOf("/")));
    return folder && `${folder}/`;
  }

  /**
   * @param {string} title
   * @param {string} label
   * @param {import("./forms.js").Field} field
   * @param {(values: Record<string, string>) => Promise<any>} submit
   */
  showForm(title, label, field, submit) {
    showForm(this.place, title, label, [field], submit, () => this.tree.root.focus());
    const input = /** @type {HTMLInputElement} */ (field.control);
    const end = input.value.length;
    const dot = input.value.lastIndexOf(".");
    const name = input.value.lastIndexOf("/") + 1;
    input.setSelectionRange(name, dot > name ? dot : end);
  }

  /**
   * @param {"file" | "folder"} kind
   * @param {string} [path]  initial value
   */
  askNew(kind, path) {
    const initial = path ?? this.folder();
    const field = labelled(`Path of the new ${kind}`, "path", initial);
    this.showForm(`New ${kind}`, "Create", field, async (values) => {
      const typed = values.path.trim();
      const suffix = kind === "file" && typed && !/\.[^/.]+$/.test(typed) ? ".md" : "";
      const reply = await this.change("create", { path: typed + suffix, kind });
      if (reply.answer && kind === "file") {
        setTimeout(() => this.startEditing()); // after the form has focused the tree
      }
      return reply;
    });
  }

  askMove() {
    if (!this.row || isShown(this.row)) {
      return;
    }
    const path = this.row.id;
    const field = labelled("New path", "target", path);
    this.showForm(`Rename or move ${path}`, "Move", field, async ({ target }) =>
      target.trim() === path ? {} : this.change("move", { path, target }),
    );
  }

  removeRow() {
    if (this.row && !isShown(this.row)) {
      this.change("delete", { path: this.row.id });
    }
  }

  async startEditing() {
    const { path, editable } = this.state;
    if (!editable || this.editor) {
      this.editor?.focus();
      return;
    }
    const { answer } = await this.change("edit", { path });
    if (answer && !this.editor) {
      this.editor = new FileEditor(answer, {
        save: (file) => this.change("save", file),
        close: () => this.stopEditing(),
      });
      this.room.replaceChildren(this.editor.element);
      this.article.hidden = true;
      this.editor.focus();
    }
  }

  stopEditing() {
    this.editor = null;
    this.room.replaceChildren();
    this.article.hidden = false;
    this.edit.focus();
  }

  /**
   * Open another file, after unsaved changes are saved or dropped.
   *
   * @param {() => void} action
   */
  leaveEditor(action) {
    if (!this.editor) {
      action();
      return;
    }
    this.editor.leave(() => {
      this.stopEditing();
      action();
    });
  }

  // Links

  /** @param {string} href */
  follow(href) {
    if (!href.startsWith(MISSING)) {
      this.send("follow", { href });
    }
  }

  /**
   * Create a missing note when its link is clicked.
   *
   * @param {MouseEvent} event
   */
  onMissing(event) {
    const link = event.target instanceof Element && event.target.closest("a[href]");
    const href = (link && link.getAttribute("href")) || "";
    if (href.startsWith(MISSING)) {
      const name = decodeURIComponent(href.slice(MISSING.length).split("#")[0]);
      const { path } = this.state;
      const folder = name.includes("/") ? "" : path.slice(0, path.lastIndexOf("/") + 1);
      this.askNew("file", folder + name + (/\.[^/.]+$/.test(name) ? "" : ".md"));
    }
  }
}

/**
 * Whether a row is part of a knowledge base, which is read-only.
 *
 * @param {Row} row
 */
function isShown(row) {
  return row.id === "kb" || row.id.startsWith("kb/");
}

export const widget = widgetOf(FilesView);
