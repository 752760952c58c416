// One entry: facts, and tabs with its prompt, code, other files and history.
import { make, makeButton, setText } from "../../export/assets/elements.js";
import { labelled, showForm } from "./forms.js";
import { fillHtml } from "./html.js";
import { Reader } from "./reader.js";
import { makeStars, showStars } from "./stars.js";

/**
 * @typedef {object} Entry  texts, and HTML that Python sanitised
 * @property {string} slug
 * @property {string} title
 * @property {string} version
 * @property {number} stars  the reader's own, or 0
 * @property {string} rated
 * @property {string[]} tabs  their labels
 * @property {string} head  title and facts, as HTML
 * @property {string} prompt  as HTML
 * @property {string} readme  as HTML
 * @property {string[]} code  paths
 * @property {string} artifacts  a table, as HTML
 * @property {string} history  as HTML
 * @property {Record<string, string>} fields
 * @typedef {object} Handlers
 * @property {(what: string, values: Record<string, any>) => Promise<import("./asking.js").Reply>} ask
 * @property {(fields: Record<string, string>) => void} edit
 * @property {() => void} close
 */

const TABS = ["prompt", "code", "artifacts", "history"];
const PAUSE = 250; // milliseconds between two pieces of a download, which Jupyter limits
const FEW_PIECES = 8;

let numbers = 0;

export class EntryDetails {
  /** @param {Handlers} handlers */
  constructor({ ask, edit, close }) {
    this.ask = ask;
    this.serial = -1;
    /** @type {Entry | null} */
    this.entry = null;
    this.path = "";
    this.name = `kbkit-entry-${(numbers += 1)}`;
    this.head = make("header");
    const { stars, group } = makeStars((score) => this.ask("rate", { slug: this.slug, score }));
    this.stars = /** @type {HTMLButtonElement[]} */ (stars);
    this.rated = make("span", { class: "kbkit-rated" });
    this.place = make("div");
    const buttons = [
      makeButton("Edit", () => this.entry && edit(this.entry.fields)),
      makeButton("Delete", () => this.ask("delete", { slug: this.slug })),
      makeButton("Close", close),
    ];
    const rating = make("div", { class: "kbkit-actions" }, group, this.rated);
    const tools = make("div", { class: "kbkit-tools" }, buttons);
    this.tabs = TABS.map((name, i) => {
      const of = { role: "tab", id: `${this.name}-tab-${i}`, "aria-controls": `${this.name}-${i}` };
      return makeButton(name, () => this.select(i), of);
    });
    const list = make("div", { class: "kbkit-tabs", role: "tablist", "aria-label": "Parts of the entry", onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKeydown(event) }, this.tabs); // prettier-ignore
    this.parts = TABS.map(
      (_, i) =>
      make("div", { role: "tabpanel", id: `${this.name}-${i}`, "aria-labelledby": `${this.name}-tab-${i}`, tabindex: 0, hidden: true }), // prettier-ignore
    );
    this.prompt = new Reader(() => {});
    this.readme = new Reader(() => {});
    this.code = new Reader(() => {});
    this.element = make("article", { class: "kbkit-article kbkit-entry", hidden: true }, [
      this.head,
      rating,
      tools,
      list,
      ...this.parts,
    ]);
    this.parts[2].addEventListener("click", ({ target }) => {
      if (target instanceof HTMLButtonElement && target.dataset.path) {
        this.download(target.dataset.path, target);
      }
    });
    this.select(0);
  }

  get slug() {
    return this.entry?.slug ?? "";
  }

  /**
   * @param {Entry | null} entry
   * @param {number} serial  changes with each opened entry
   */
  draw(entry, serial) {
    const before = this.entry;
    this.entry = entry;
    this.element.hidden = entry === null;
    if (entry === null) {
      return;
    }
    this.element.setAttribute("aria-label", entry.title);
    fillHtml(this.head, entry.head);
    showStars(this.stars, entry.stars);
    this.rated.textContent = entry.rated;
    this.tabs.forEach((tab, i) => setText(tab, entry.tabs[i]));
    if (serial !== this.serial) {
      this.serial = serial;
      this.path = "";
      this.select(0);
    }
    this.drawPrompt(entry, serial);
    if (before?.artifacts !== entry.artifacts) {
      fillHtml(this.parts[2], entry.artifacts);
    }
    fillHtml(this.parts[3], entry.history);
    if (before?.version !== entry.version || before?.slug !== entry.slug) {
      this.drawCode(entry);
    }
  }

  /** @param {number} i */
  select(i) {
    this.tabs.forEach((tab, at) => {
      tab.setAttribute("aria-selected", String(at === i));
      tab.setAttribute("tabindex", at === i ? "0" : "-1");
      this.parts[at].hidden = at !== i;
    });
  }

  /** @param {KeyboardEvent} event */
  onKeydown(event) {
    const i = this.tabs.findIndex((tab) => tab.getAttribute("aria-selected") === "true");
    const last = TABS.length - 1;
    /** @type {Record<string, number>} */
    const moves = { ArrowRight: i === last ? 0 : i + 1, ArrowLeft: i === 0 ? last : i - 1, Home: 0, End: last }; // prettier-ignore
    if (event.key in moves) {
      this.select(moves[event.key]);
      this.tabs[moves[event.key]].focus();
      event.preventDefault();
      event.stopPropagation();
    }
  }

  /**
   * @param {Reader} reader
   * @param {string} title
   * @param {string} html
   * @param {number} serial
   */
  static fill(reader, title, html, serial) {
    reader.show({ title, html, links: [], anchor: "", passage: "", serial });
    return reader.page;
  }

  /**
   * @param {Entry} entry
   * @param {number} serial
   */
  drawPrompt(entry, serial) {
    const none = make("p", { class: "kbkit-tree-note" }, "No prompt.");
    const prompt = EntryDetails.fill(this.prompt, "the prompt", entry.prompt, serial);
    const readme = EntryDetails.fill(this.readme, "the readme", entry.readme, serial);
    const parts = [entry.prompt ? prompt : none];
    if (entry.readme) {
      parts.push(make("h4", {}, "Readme"), readme);
    }
    if (
      this.parts[0].childElementCount !== parts.length ||
      !parts.every((part) => this.parts[0].contains(part))
    ) {
      this.parts[0].replaceChildren(...parts);
    }
  }

  // Code

  /** @param {Entry} entry */
  drawCode(entry) {
    const button = (/** @type {string} */ path) =>
      makeButton(make("bdi", {}, path), () => this.showCode(path), { "data-path": path });
    const names = make("div", { class: "kbkit-tools" }, entry.code.map(button));
    const add = makeButton("Add a file…", () => this.writeFile("", ""));
    this.names = names;
    this.note = make("p", { class: "kbkit-tree-note" }, entry.code.length ? "" : "No code.");
    this.acts = make("div", { class: "kbkit-tools" }, add);
    this.place.replaceChildren();
    this.code.page.hidden = true;
    this.parts[1].replaceChildren(names, this.acts, this.place, this.note, this.code.page);
    if (entry.code.length) {
      this.showCode(entry.code.includes(this.path) ? this.path : entry.code[0]);
    }
  }

  /** @param {string} path */
  async showCode(path) {
    this.path = path;
    const { slug } = this;
    const { answer, problem } = await this.ask("code", { slug, path });
    if (this.path !== path || this.slug !== slug || !this.note || !this.acts) {
      return;
    }
    this.names?.querySelectorAll("button").forEach((each) => each.setAttribute("aria-pressed", String(each.dataset.path === path))); // prettier-ignore
    this.note.textContent = problem ? problem.text : answer.note;
    this.code.page.hidden = Boolean(problem);
    EntryDetails.fill(this.code, path, answer?.html ?? "", this.serial);
    const text = answer?.text;
    const add = this.acts.firstElementChild;
    const edit = makeButton(`Edit ${path}`, () => this.writeFile(path, text));
    const remove = makeButton(`Delete ${path}`, () =>
      this.ask("write", { slug: this.slug, path, remove: true }),
    );
    const save = makeButton("Download", () => this.download(path, save), { "aria-label": `Download ${path}` }); // prettier-ignore
    this.acts.replaceChildren(...(add ? [add] : []), ...(text ? [edit] : []), remove, save);
  }

  /**
   * @param {string} path  of the file, or "" for a new one
   * @param {string} text
   */
  writeFile(path, text) {
    const area = make("textarea", { rows: 12, class: "kbkit-code" });
    const fields = [
      ...(path ? [] : [labelled("Path within the entry", "path", "code/")]), // prettier-ignore
      labelled("Text", "text", text, area),
    ];
    showForm(this.place, path ? `Edit ${path}` : "New file", "Save", fields, (values) =>
      this.ask("write", { slug: this.slug, path, ...values, new: !path }),
    );
  }

  /**
   * Fetch a file piece by piece, and hand it to the browser.
   *
   * @param {string} path
   * @param {HTMLButtonElement} button
   */
  async download(path, button) {
    const { slug } = this;
    /** @type {Uint8Array<ArrayBuffer>[]} */
    const pieces = [];
    button.disabled = true;
    for (let start = 0, end = false; !end;) {
      const { answer } = await this.ask("download", { slug, path, start });
      if (!answer) {
        button.disabled = false;
        return;
      }
      pieces.push(Uint8Array.from(atob(answer.data), (letter) => letter.charCodeAt(0)));
      ({ end, next: start } = answer);
      if (!end && pieces.length > FEW_PIECES) {
        await new Promise((resolve) => {
          setTimeout(resolve, PAUSE);
        });
      }
    }
    button.disabled = false;
    const address = URL.createObjectURL(new Blob(pieces, { type: "application/octet-stream" }));
    const link = document.createElement("a");
    link.href = address;
    link.download = path.slice(path.lastIndexOf("/") + 1);
    link.click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }
}
