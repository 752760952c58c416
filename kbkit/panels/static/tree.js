// A tree of folders and their items. Rows are requested when their folder is opened, and only
// visible rows are elements, so that thousands cost no more than a few.
import { make, placeAfter } from "../../export/assets/elements.js";

/**
 * @typedef {object} Row  a line
 * @property {string} id
 * @property {string} name
 * @property {number | null} [count]  of a folder: number of its items; null if not counted
 * @property {Row[]} [rows]  of a folder that is open from the start
 * @property {string} [about]  description
 * @property {string} [state]  of a document that is stale or gone
 * @typedef {{row: Row, level: number, place: number, size: number, above: number}} Line
 * @typedef {object} State
 * @property {string} label
 * @property {string} kb
 * @property {number} version  changes with the rows
 * @property {Row[]} rows
 * @property {Row[] | null} found  results of a filter, shown instead of the rows
 * @property {string} empty  text for an empty tree
 * @property {string} selected  id of the open item, or ""
 * @property {string[]} ancestors  its folders, outermost first
 * @property {number} reveals  changes when the selected row must become visible
 * @typedef {object} Handlers
 * @property {(folder: string) => void} children  requests the rows of a folder; see `receive`
 * @property {(id: string) => void} select  opens an item that is not a folder
 * @property {() => void} look  the reader returns to the tree
 * @property {(row: Row | undefined) => void} [activate]  the active row changed
 * @property {(key: string, row: Row) => boolean} [key]  another key; returns whether it was handled
 */

const ROW_HEIGHT = 28;
const SPARE = 6;
const TYPING_PAUSE = 700;

let trees = 0;

export class Tree {
  /**
   * @param {HTMLElement} el
   * @param {AbortSignal} ended
   * @param {Handlers} handlers
   */
  constructor(el, ended, handlers) {
    this.handlers = handlers;
    this.name = `kbkit-tree-${(trees += 1)}`;
    /** @type {State} */
    this.state = {
      label: "",
      kb: "",
      version: -1,
      rows: [],
      found: null,
      empty: "",
      selected: "",
      ancestors: [],
      reveals: -1,
    };
    /** @type {Map<string, Row[]>} known rows by folder */
    this.known = new Map();
    /** @type {Set<string>} folders whose rows are requested */
    this.asked = new Set();
    /** @type {Set<string>} */
    this.open = new Set();
    /** @type {Set<string>} closed folders of filter results */
    this.closed = new Set();
    /** @type {Line[]} */
    this.lines = [];
    /** @type {Map<string, HTMLElement>} */
    this.elements = new Map();
    this.active = "";
    this.announced = "";
    this.typed = "";
    this.typedAt = 0;
    /** @type {Set<string>} items chosen here that are still opening; their rows are visible */
    this.chosen = new Set();
    /** Whether the selected row must still become visible. */
    this.revealing = false;
    this.body = make("div", { class: "kbkit-tree-body", role: "presentation" });
    this.note = make("p", { class: "kbkit-tree-note" });
    this.root = make("div", {
      class: "kbkit-tree",
      role: "tree",
      tabindex: 0,
      // hides keys from the notebook, where d twice deletes a cell
      "data-lm-suppress-shortcuts": "true",
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKeydown(event),
      onscroll: () => this.paint(),
      onclick: (/** @type {MouseEvent} */ event) => this.onClick(event),
      onfocus: () => this.onFocus(),
    });
    this.root.append(this.body);
    el.replaceChildren(this.root, this.note);
    const sizes = new ResizeObserver(() => this.paint());
    sizes.observe(this.root);
    ended.addEventListener("abort", () => sizes.disconnect());
  }

  /** @param {State} state */
  draw(state) {
    const before = this.state;
    this.state = state;
    if (state.kb !== before.kb) {
      this.known.clear();
      this.open.clear();
      this.active = "";
    }
    if (state.version !== before.version) {
      this.addRows(state.rows);
      const loaded = [...this.open].filter((id) => this.known.has(id));
      loaded.forEach((folder) => this.askFor(folder));
    }
    if (state.found !== before.found) {
      this.closed.clear();
      this.root.scrollTop = 0;
    }
    if (state.reveals !== before.reveals && !this.chosen.delete(state.selected)) {
      this.revealing = true;
    }
    this.root.setAttribute("aria-label", state.label);
    this.update();
  }

  /**
   * Take over rows, with those of folders that start open.
   *
   * @param {Row[]} rows
   */
  addRows(rows) {
    for (const row of rows) {
      if (row.rows) {
        this.known.set(row.id, row.rows);
        this.open.add(row.id);
        this.addRows(row.rows);
      }
    }
  }

  /** @param {string} folder */
  askFor(folder) {
    this.asked.add(folder);
    this.handlers.children(folder);
  }

  /** @param {{folder: string, rows: Row[]}} message */
  receive({ folder, rows }) {
    if (typeof folder === "string" && Array.isArray(rows)) {
      this.asked.delete(folder);
      this.known.set(folder, rows);
      this.update();
    }
  }

  update() {
    this.reveal();
    this.lines = [];
    const { found, rows, selected } = this.state;
    this.list(found ?? rows, 1, -1);
    /** @type {(id: string) => boolean} */
    const isListed = (id) => this.lines.some((line) => line.row.id === id);
    if (!isListed(this.active)) {
      // no row is active while the selected row is still loading
      const loading = this.revealing && !found && this.asked.size > 0;
      const first = loading ? "" : (this.lines[0]?.row.id ?? "");
      this.active = isListed(selected) ? selected : first;
    }
    this.root.hidden = this.lines.length === 0;
    this.note.hidden = this.lines.length > 0;
    this.note.textContent = this.state.empty;
    this.body.style.height = `${this.lines.length * ROW_HEIGHT}px`;
    if (this.revealing && !this.state.found && isListed(selected)) {
      this.revealing = false;
      this.activate(this.lines.findIndex((line) => line.row.id === selected));
    }
    this.paint();
  }

  /** Open the known folders of the selected item. */
  reveal() {
    if (!this.revealing || this.state.found) {
      return;
    }
    for (const folder of this.state.ancestors) {
      this.open.add(folder);
      if (!this.known.has(folder)) {
        this.askFor(folder);
      }
    }
  }

  /**
   * @param {Row[]} rows
   * @param {number} level
   * @param {number} above  the index of their folder's line
   */
  list(rows, level, above) {
    rows.forEach((row, i) => {
      const index = this.lines.length;
      this.lines.push({ row, level, place: i + 1, size: rows.length, above });
      if (this.isOpen(row)) {
        this.list(this.inside(row) ?? [], level + 1, index);
      }
    });
  }

  /**
   * @param {Row} row
   * @returns {Row[] | undefined}
   */
  inside(row) {
    return this.state.found ? row.rows : this.known.get(row.id);
  }

  /**
   * @param {Row} row
   * @returns {boolean}
   */
  isOpen(row) {
    return isFolder(row) && (this.state.found ? !this.closed.has(row.id) : this.open.has(row.id));
  }

  /** Create elements for the visible rows and the focused one. */
  paint() {
    const first = Math.max(0, Math.floor(this.root.scrollTop / ROW_HEIGHT) - SPARE);
    const last = first + Math.ceil(this.root.clientHeight / ROW_HEIGHT) + 2 * SPARE;
    const visible = new Map();
    this.lines.forEach((line, i) => {
      if ((i >= first && i < last) || line.row.id === this.active) {
        visible.set(line.row.id, i);
      }
    });
    for (const [id, element] of this.elements) {
      if (!visible.has(id)) {
        element.remove();
        this.elements.delete(id);
      }
    }
    for (const [id, i] of visible) {
      this.fill(id, i);
    }
    const active = this.elements.get(this.active);
    if (active) {
      this.root.setAttribute("aria-activedescendant", active.id);
    } else {
      this.root.removeAttribute("aria-activedescendant");
    }
    if (this.active !== this.announced) {
      this.announced = this.active;
      this.handlers.activate?.(this.lines.find((line) => line.row.id === this.active)?.row);
    }
  }

  /**
   * @param {string} id
   * @param {number} i
   */
  fill(id, i) {
    const line = this.lines[i];
    const { row } = line;
    let element = this.elements.get(id);
    if (!element) {
      element = make("div", { class: "kbkit-line", role: "treeitem" });
      this.elements.set(id, element);
      this.body.append(element);
    }
    const drawing = JSON.stringify([
      i,
      line,
      this.isOpen(row),
      id === this.active,
      this.state.selected === id,
    ]);
    if (element.dataset.drawing === drawing) {
      return;
    }
    element.dataset.drawing = drawing;
    element.id = `${this.name}-${i}`;
    element.style.top = `${i * ROW_HEIGHT}px`;
    element.style.paddingInlineStart = `${4 + (line.level - 1) * 14}px`;
    element.setAttribute("aria-level", String(line.level));
    element.setAttribute("aria-posinset", String(line.place));
    element.setAttribute("aria-setsize", String(line.size));
    element.setAttribute("aria-selected", String(this.state.selected === id));
    element.classList.toggle("kbkit-active", id === this.active);
    element.classList.toggle("kbkit-folder", isFolder(row));
    if (isFolder(row)) {
      element.setAttribute("aria-expanded", String(this.isOpen(row)));
    } else {
      element.removeAttribute("aria-expanded");
    }
    element.title = [row.name, row.about].filter(Boolean).join("\n");
    // a browser drops a click whose target was replaced while the button was down
    const content = JSON.stringify([row, this.isOpen(row)]);
    if (element.dataset.shown !== content) {
      element.dataset.shown = content;
      element.replaceChildren(...parts(row, this.isOpen(row)));
    }
  }

  /**
   * Move to a line and scroll to it.
   *
   * @param {number} i
   */
  activate(i) {
    const line = this.lines[Math.max(0, Math.min(i, this.lines.length - 1))];
    if (!line) {
      return;
    }
    this.active = line.row.id;
    const top = this.lines.indexOf(line) * ROW_HEIGHT;
    const { scrollTop, clientHeight } = this.root;
    if (top < scrollTop) {
      this.root.scrollTop = top;
    } else if (top + ROW_HEIGHT > scrollTop + clientHeight) {
      this.root.scrollTop = top + ROW_HEIGHT - clientHeight;
    }
    this.paint();
  }

  onFocus() {
    this.handlers.look();
    this.paint();
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const element = event.target instanceof Element && event.target.closest(".kbkit-line");
    const entry = [...this.elements].find(([, each]) => each === element);
    const i = this.lines.findIndex((line) => line.row.id === entry?.[0]);
    if (i >= 0) {
      this.revealing = false;
      this.activate(i);
      this.choose(this.lines[i].row);
    }
  }

  /** @param {Row} row */
  choose(row) {
    if (isFolder(row)) {
      this.setOpen(row, !this.isOpen(row));
    } else {
      if (!this.state.found && row.id !== this.state.selected) {
        this.chosen.add(row.id);
      }
      this.handlers.select(row.id);
    }
  }

  /**
   * @param {Row} row
   * @param {boolean} open
   */
  setOpen(row, open) {
    if (this.state.found) {
      this.closed[open ? "delete" : "add"](row.id);
    } else {
      this.open[open ? "add" : "delete"](row.id);
      if (open && !this.known.has(row.id)) {
        this.askFor(row.id);
      }
    }
    this.update();
  }

  /** @param {KeyboardEvent} event */
  onKeydown(event) {
    const i = this.lines.findIndex((line) => line.row.id === this.active);
    if (i < 0 || event.ctrlKey || event.altKey || event.metaKey || event.isComposing) {
      return;
    }
    const page = Math.max(1, Math.floor(this.root.clientHeight / ROW_HEIGHT) - 1);
    const place = placeAfter(event.key, i, this.lines.length, page);
    const line = this.lines[i];
    /** @type {Record<string, () => void>} */
    const actions = {
      ArrowRight: () => this.expand(line, i),
      ArrowLeft: () => this.collapse(line),
      Enter: () => this.choose(line.row),
      " ": () => (this.isTyping() ? this.typeAhead(" ", i) : this.choose(line.row)),
    };
    this.revealing = false; // from now on the reader moves the active row
    if (place !== null || event.key in actions) {
      if (event.key !== " ") {
        this.typed = "";
      }
      place === null ? actions[event.key]() : this.activate(place);
    } else if (this.handlers.key?.(event.key, line.row)) {
      // a handler took it
    } else if (event.key.length === 1) {
      this.typeAhead(event.key, i);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * @param {Line} line
   * @param {number} i
   */
  expand(line, i) {
    if (isFolder(line.row) && !this.isOpen(line.row)) {
      this.setOpen(line.row, true);
    } else if (isFolder(line.row) && this.lines[i + 1]?.above === i) {
      this.activate(i + 1);
    }
  }

  /** @param {Line} line */
  collapse(line) {
    if (this.isOpen(line.row)) {
      this.setOpen(line.row, false);
    } else if (line.above >= 0) {
      this.activate(line.above);
    }
  }

  isTyping() {
    return this.typed !== "" && Date.now() - this.typedAt < TYPING_PAUSE;
  }

  /**
   * Go to the next line whose name starts with the typed text.
   *
   * @param {string} key
   * @param {number} i  the line to start from
   */
  typeAhead(key, i) {
    this.typed = (this.isTyping() ? this.typed : "") + key.toLowerCase();
    this.typedAt = Date.now();
    const start = this.typed.length > 1 ? i : i + 1;
    for (let step = 0; step < this.lines.length; step += 1) {
      const at = (start + step) % this.lines.length;
      if (this.lines[at].row.name.toLowerCase().startsWith(this.typed)) {
        this.activate(at);
        return;
      }
    }
  }
}

/** @param {Row} row */
function isFolder(row) {
  return row.count !== undefined;
}

/**
 * @param {Row} row
 * @param {boolean} open
 */
function parts(row, open) {
  const name = make("bdi", { class: "kbkit-line-name" }, row.name);
  if (row.count === undefined) {
    const about = make(
      "bdi",
      { class: "kbkit-line-about", "aria-hidden": "true" },
      row.about ?? "",
    );
    return [name, about, ...(row.state ? [make("span", { class: "kbkit-badge" }, row.state)] : [])];
  }
  const twist = make("span", { class: "kbkit-twist", "aria-hidden": "true" }, open ? "▾" : "▸");
  const badge = row.state && make("span", { class: "kbkit-badge" }, row.state);
  const count = make("span", { class: "kbkit-line-count" }, row.count?.toLocaleString("en"));
  return [twist, name, badge || "", count];
}
