// A graph as people look at it, in panels and on pages: its picture, filters, and a list beside it
// that says the same and is walked by keys.
//
//     const view = new GraphView(element, source);
//     view.show({ nodes, edges, total });         // as GraphLayout.to_dict() of Python gives them
//     view.showGaps([{ id, kind, name, reason }]);
//     view.select("entity:...");
//     view.close();
import { GraphCanvas, outline, shapeOf } from "./canvas.js";
import { make, makeSvg, setText } from "./elements.js";

/**
 * @typedef {{id: string, name: string, type: string}} Item
 * @typedef {Item & {relation: string, forward: boolean, weight: number}} Neighbor
 * @typedef {object} GraphData
 * @property {(import("./canvas.js").GraphNode)[]} nodes  those that matter most come first
 * @property {(import("./canvas.js").GraphEdge)[]} edges
 * @property {number} total  how many nodes there are in all
 * @typedef {object} Details  what is known of a node
 * @property {Item} item
 * @property {string} description
 * @property {string[]} aliases
 * @property {[string, string][]} facts  labels and values
 * @property {Neighbor[]} neighbors  the strongest first
 * @property {any[]} documents  what `link` takes: each has a `name`
 * @property {any[]} passages  likewise; each also has a `text`
 * @property {{kind: string, reason: string}[]} gaps
 * @typedef {object} Source  where a view gets what it does not have
 * @property {(id: string) => Promise<Details>} details
 * @property {(id: string) => Promise<GraphData | null>} [around]  a picture of what is near a node
 *   that is not drawn; without, only what is drawn is shown
 * @property {(text: string) => Promise<Item[]>} [find]  nodes that are not drawn, by name
 * @property {(thing: any) => Node} [link]  a document or a passage as a link
 * @property {(details: Details | null, place: HTMLElement) => void} [onDetails]  may add to them
 */

const PAUSE = 150; // milliseconds after a key
const MOST_LISTED = 100;
/** What may be meant by the order of colours: those of graph.css. */
const COLOURS = ["symbol", "term", "setting", "error", "flag", "variable", "command", "file", "endpoint", "schema", "name", "document"]; // prettier-ignore

let graphs = 0;

/** @param {string} type */
function colourOf(type) {
  return COLOURS.includes(type) ? type : "other";
}

/** @param {string} name */
function spoken(name) {
  return name.replaceAll("_", " ");
}

/**
 * @param {number} count
 * @param {string} one
 * @param {string} [many]
 */
function counted(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/**
 * A node's mark as it is in the picture.
 *
 * @param {string} type
 */
function markOf(type) {
  /** @type {string[]} */
  const parts = [];
  outline(
    {
      moveTo: (/** @type {number} */ x, /** @type {number} */ y) => parts.push(`M${x} ${y}`),
      lineTo: (/** @type {number} */ x, /** @type {number} */ y) => parts.push(`L${x} ${y}`),
      arc: () => parts.push("A5 5 0 1 1 1 6 5 5 0 1 1 11 6"),
      closePath: () => parts.push("Z"),
    },
    shapeOf(type),
    6,
    6,
    5,
  );
  const path = makeSvg("path", { d: parts.join("") });
  const attributes = { class: "kb-graph-mark", viewBox: "0 0 12 12", "aria-hidden": "true" };
  return makeSvg("svg", { ...attributes, "data-type": colourOf(type) }, path);
}

class GraphView {
  /**
   * @param {HTMLElement} root  is filled
   * @param {Source} source
   */
  constructor(root, source) {
    this.source = source;
    this.name = `kb-graph-${(graphs += 1)}`;
    this.ended = new AbortController();
    /** @type {GraphData} */
    this.data = { nodes: [], edges: [], total: 0 };
    /** @type {Map<string, number>} */
    this.numbers = new Map();
    /** @type {Set<string>} */
    this.hiddenTypes = new Set();
    /** @type {Set<string>} */
    this.hiddenRelations = new Set();
    /** @type {{id: string, kind: string, name: string, reason: string}[]} */
    this.gaps = [];
    /** @type {Item | null} */
    this.selected = null;
    /** @type {Item[]} what was selected before */
    this.trail = [];
    /** @type {Details | null} */
    this.details = null;
    /** @type {(Item & Partial<Neighbor> & {note?: string})[]} what is listed */
    this.items = [];
    this.active = 0;
    this.listed = MOST_LISTED;
    this.asked = 0;
    this.timer = 0;
    const { signal } = this.ended;
    this.query = make("input", {
      type: "search",
      id: `${this.name}-query`,
      placeholder: "Part of a name",
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.onQueryKey(event),
      oninput: () => {
        clearTimeout(this.timer);
        this.timer = window.setTimeout(() => this.search(), PAUSE);
      },
    });
    this.gapButton = make("button", { type: "button", "aria-pressed": "false", onclick: () => this.toggleGaps() }, "Gaps"); // prettier-ignore
    this.gapButton.hidden = true;
    this.types = make("div", { class: "kb-graph-chips", role: "group", "aria-label": "Types" });
    this.relations = make("div", { class: "kb-graph-chips", role: "group", "aria-label": "Relations" }); // prettier-ignore
    this.relationBox = make("details", { class: "kb-graph-relations" }, make("summary", {}, "Relations"), this.relations); // prettier-ignore
    this.canvasElement = make("canvas", { tabindex: 0, role: "application" });
    this.hint = make("div", { class: "kb-graph-hint", "aria-hidden": "true" });
    this.notice = make("div", { class: "kb-graph-notice" });
    /** @type {(label: string, text: string, action: () => void) => HTMLElement} */
    const control = (label, text, action) =>
      make("button", { type: "button", "aria-label": label, title: label, onclick: action }, text);
    const controls = make(
      "div",
      { class: "kb-graph-zoom" },
      control("Zoom in", "+", () => this.canvas.zoom(1.5)),
      control("Zoom out", "−", () => this.canvas.zoom(1 / 1.5)),
      control("Show all", "⤢", () => this.canvas.fitAll()),
    );
    this.picture = make("div", { class: "kb-graph-picture" }, this.canvasElement, this.hint, this.notice, controls); // prettier-ignore
    this.back = make("button", { type: "button", class: "kb-graph-back", onclick: () => this.goBack() }, "← Back"); // prettier-ignore
    this.title = make("h3", { class: "kb-graph-title", id: `${this.name}-title` });
    this.about = make("div", { class: "kb-graph-about" });
    this.added = make("div", { class: "kb-graph-added" });
    this.listTitle = make("h4", { class: "kb-graph-list-title", id: `${this.name}-list` });
    this.list = make("ul", {
      class: "kb-graph-list",
      role: "listbox",
      tabindex: 0,
      "aria-labelledby": `${this.name}-list`,
      // keeps the notebook's own keys out: there, d twice deletes a cell
      "data-lm-suppress-shortcuts": "true",
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.onListKey(event),
      onclick: (/** @type {MouseEvent} */ event) => this.onListClick(event),
      onmousemove: (/** @type {MouseEvent} */ event) => this.onListPoint(event),
      onmouseleave: () => this.canvas.change({ pointed: -1 }),
      onfocus: () => this.markActive(),
      onblur: () => this.canvas.change({ pointed: -1 }),
    });
    this.more = make("button", { type: "button", onclick: () => this.listMore() }, "Show more");
    this.sources = make("div", { class: "kb-graph-sources" });
    const side = make(
      "section",
      { class: "kb-graph-side", "aria-label": "What is selected, and its neighbours" },
      this.back,
      this.title,
      this.about,
      this.added,
      this.listTitle,
      this.list,
      this.more,
      this.sources,
    );
    this.status = make("p", { class: "kb-graph-status", role: "status" });
    this.probe = make("span", { class: "kb-graph-probe", "aria-hidden": "true" }, make("span"));
    this.probe.addEventListener("transitionend", () => this.readLooks(), { signal });
    const label = make("label", { for: this.query.id }, "Find");
    const bar = make("div", { class: "kb-graph-bar" }, label, this.query, this.gapButton);
    const both = make("div", { class: "kb-graph-both" }, this.picture, side);
    this.root = make("div", { class: "kb-graph" }, bar, this.types, this.relationBox, both, this.status, this.probe); // prettier-ignore
    root.replaceChildren(this.root);
    this.canvas = new GraphCanvas(this.canvasElement, {
      onSelect: (number) => this.select(number < 0 ? "" : this.data.nodes[number].id),
      onPoint: (number) => this.point(number),
      signal: this.ended.signal,
    });
    this.readLooks();
    this.canvas.resize();
  }

  close() {
    this.ended.abort();
    clearTimeout(this.timer);
  }

  /** Take over the colours of the page, which change with its theme. */
  readLooks() {
    const reader = /** @type {HTMLElement} */ (this.probe.firstChild);
    /** @type {(variable: string) => string} */
    const read = (variable) => {
      reader.style.backgroundColor = `var(${variable})`;
      return getComputedStyle(reader).backgroundColor;
    };
    const colours = new Map(
      [...COLOURS, "other"].map((type) => [type, read(`--kb-graph-${type}`)]),
    );
    const [page, text, line, accent, gap] = ["page", "text", "line", "accent", "gap"].map((each) => read(`--kb-graph-${each}`)); // prettier-ignore
    const font = getComputedStyle(this.root).fontFamily;
    const fill = (/** @type {string} */ type) =>
      /** @type {string} */ (colours.get(colourOf(type)));
    this.canvas.paintWith({ page, text, line, accent, gap, fill, font });
  }

  /**
   * Show a graph in place of the one before; what was selected stays so if it is there.
   *
   * @param {GraphData} data
   * @param {string} [notice]  what to say where there is nothing
   */
  show(data, notice = "Nothing is related yet.") {
    this.data = data;
    this.numbers = new Map(data.nodes.map(({ id }, number) => [id, number]));
    this.notice.textContent = data.nodes.length ? "" : notice;
    this.root.classList.toggle("kb-graph-empty", !data.nodes.length);
    this.canvas.show(data.nodes, data.edges);
    this.drawFilters();
    this.filter();
    const label = `Picture of ${counted(data.nodes.length, "node")} and ${counted(data.edges.length, "relation")}: arrow keys move it, plus and minus zoom, 0 shows all. The list beside it says the same.`; // prettier-ignore
    this.canvasElement.setAttribute("aria-label", label);
    const before = this.selected?.id ?? "";
    this.drawGaps();
    if (!before || !this.numbers.has(before)) {
      this.overview();
    } else {
      this.select(before, false);
    }
  }

  /** @param {{id: string, kind: string, name: string, reason: string}[]} gaps */
  showGaps(gaps) {
    this.gaps = gaps;
    this.drawGaps();
  }

  drawGaps() {
    this.gapButton.hidden = !this.gaps.length;
    this.gapButton.textContent = `Gaps (${this.gaps.length})`;
    const drawn = this.gaps.flatMap(({ id }) => this.numbers.get(id) ?? []);
    this.canvas.change({ gaps: new Set(drawn) });
  }

  toggleGaps() {
    if (this.gapButton.getAttribute("aria-pressed") === "true") {
      this.overview();
      return;
    }
    this.leave();
    this.gapButton.setAttribute("aria-pressed", "true");
    const items = this.gaps.map(({ id, name, kind, reason }) => ({ id, name, type: kind, note: reason })); // prettier-ignore
    this.fill("What the documentation lacks", items);
    this.markListed();
    this.say(counted(items.length, "gap"));
  }

  // Filters

  drawFilters() {
    const { nodes, edges } = this.data;
    /** @type {(values: string[]) => [string, number][]} */
    const counts = (values) => {
      const found = new Map();
      values.forEach((value) => found.set(value, (found.get(value) ?? 0) + 1));
      return [...found].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    };
    /** @type {(hidden: Set<string>, marks: boolean) => (pair: [string, number]) => HTMLElement} */
    const chip =
      (hidden, marks) =>
      ([value, count]) => {
        const shown = make("button", { type: "button", "aria-pressed": String(!hidden.has(value)), onclick: () => { // prettier-ignore
          hidden.has(value) ? hidden.delete(value) : hidden.add(value);
          shown.setAttribute("aria-pressed", String(!hidden.has(value)));
          this.filter();
        } }, marks && markOf(value), make("bdi", {}, spoken(value)), make("small", {}, count.toLocaleString("en"))); // prettier-ignore
        return shown;
      };
    this.types.replaceChildren(...counts(nodes.map(({ type }) => type)).map(chip(this.hiddenTypes, true))); // prettier-ignore
    this.relations.replaceChildren(...counts(edges.map(({ name }) => name)).map(chip(this.hiddenRelations, false))); // prettier-ignore
    this.relationBox.hidden = !edges.length;
  }

  filter() {
    const { nodes, edges } = this.data;
    this.canvas.change({
      nodes: Uint8Array.from(nodes, ({ type }) => Number(!this.hiddenTypes.has(type))),
      edges: Uint8Array.from(edges, ({ name }) => Number(!this.hiddenRelations.has(name))),
    });
    if (!this.selected && this.gapButton.getAttribute("aria-pressed") !== "true") {
      this.search();
    } else if (this.selected) {
      this.listNeighbors();
    }
  }

  // Search

  /** @param {KeyboardEvent} event */
  onQueryKey(event) {
    if (event.key === "Enter" || event.key === "ArrowDown") {
      event.preventDefault();
      clearTimeout(this.timer);
      this.search();
      if (event.key === "Enter" && this.items.length) {
        this.go(this.items[0]);
      }
      this.list.focus();
    } else if (event.key === "Escape") {
      this.query.value = "";
      this.overview();
    }
    event.stopPropagation();
  }

  /** List what has the text that is looked for in its name; without any, what matters most. */
  async search() {
    const text = this.query.value.trim().toLowerCase();
    const asked = (this.asked += 1);
    this.leave();
    const { nodes } = this.data;
    const seen = nodes.filter(({ type }) => !this.hiddenTypes.has(type));
    if (!text) {
      this.fill("Most related", seen);
      this.canvas.change({ marked: null });
      const { total } = this.data;
      const all = total > nodes.length ? ` of ${total.toLocaleString("en")}` : "";
      const hidden = nodes.length - seen.length;
      this.say(nodes.length ? `${nodes.length.toLocaleString("en")}${all} nodes${hidden ? `, ${hidden} hidden` : ""}` : ""); // prettier-ignore
      return;
    }
    /** @type {(item: Item) => number} */
    const rank = ({ name }) => {
      const low = name.toLowerCase();
      return low === text ? 0 : low.startsWith(text) || low.endsWith(`.${text}`) ? 1 : 2;
    };
    const found = seen.filter(({ name }) => name.toLowerCase().includes(text));
    found.sort((a, b) => rank(a) - rank(b));
    const title = `Names with “${this.query.value.trim()}”`;
    this.fill(title, found);
    this.markListed();
    this.say(`${found.length.toLocaleString("en")} found`);
    if (this.source.find) {
      const others = (await this.source.find(text)).filter(({ id }) => !this.numbers.has(id));
      if (asked === this.asked && others.length) {
        const items = [...found, ...others].sort((a, b) => rank(a) - rank(b));
        this.fill(title, items);
        this.say(`${items.length.toLocaleString("en")} found`);
      }
    }
  }

  // Selection

  overview() {
    this.query.value = "";
    this.search();
  }

  /** Nothing is selected any more. */
  leave() {
    this.selected = null;
    this.details = null;
    this.trail = [];
    this.gapButton.setAttribute("aria-pressed", "false");
    this.title.textContent = "";
    this.about.replaceChildren();
    this.sources.replaceChildren();
    this.source.onDetails?.(null, this.added);
    this.back.hidden = true;
    this.canvas.change({ selected: -1 });
  }

  /** @param {Item} item */
  go(item) {
    if (this.selected && this.selected.id !== item.id) {
      this.trail.push(this.selected);
    }
    this.choose(item);
  }

  goBack() {
    const before = this.trail.pop();
    before ? this.choose(before) : this.overview();
    this.list.focus({ preventScroll: true });
  }

  /**
   * Select a node, or none.
   *
   * @param {string} id
   * @param {boolean} [reveals]  whether to bring it into sight
   */
  select(id, reveals = true) {
    const number = this.numbers.get(id);
    if (number === undefined) {
      this.overview();
    } else if (reveals) {
      this.go(this.data.nodes[number]);
    } else {
      this.choose(this.data.nodes[number], false);
    }
  }

  /**
   * @param {Item} item
   * @param {boolean} [reveals]
   */
  async choose(item, reveals = true) {
    const asked = (this.asked += 1);
    if (!this.numbers.has(item.id) && this.source.around) {
      const data = await this.source.around(item.id);
      if (asked !== this.asked || !data) {
        return;
      }
      this.selected = null;
      const { trail } = this;
      this.show(data);
      this.trail = trail;
      this.choose(item);
      return;
    }
    this.selected = item;
    this.details = null;
    this.gapButton.setAttribute("aria-pressed", "false");
    const number = this.numbers.get(item.id) ?? -1;
    this.canvas.change({ selected: number, marked: null });
    if (reveals && number >= 0) {
      this.canvas.reveal(number);
    }
    this.back.hidden = false;
    this.title.replaceChildren(markOf(item.type), make("bdi", {}, item.name), make("small", {}, spoken(item.type))); // prettier-ignore
    this.about.replaceChildren();
    this.sources.replaceChildren();
    this.source.onDetails?.(null, this.added);
    this.listNeighbors();
    this.say(`${item.name}, ${spoken(item.type)}: ${counted(this.items.length, "neighbour")}`);
    const details = await this.source.details(item.id);
    if (asked === this.asked && details) {
      this.showDetails(details);
    }
  }

  /** @param {Details} details */
  showDetails(details) {
    this.details = details;
    const { description, aliases, facts, gaps, documents, passages, item } = details;
    const names = make("bdi", {}, item.name);
    this.title.replaceChildren(markOf(item.type), names, make("small", {}, spoken(item.type)));
    this.about.replaceChildren(
      ...gaps.map(({ kind, reason }) => make("p", { class: "kb-graph-gap" }, make("b", {}, spoken(kind)), `: ${reason}`)), // prettier-ignore
      ...(description ? [make("p", { dir: "auto" }, description)] : []),
      ...(aliases.length ? [make("p", { class: "kb-graph-soft" }, "Also ", ...aliases.flatMap((alias, i) => [i ? ", " : "", make("bdi", {}, alias)]))] : []), // prettier-ignore
      ...(facts.length ? [make("dl", {}, ...facts.flatMap(([label, value]) => [make("dt", {}, label), make("dd", {}, make("bdi", {}, value))]))] : []), // prettier-ignore
    );
    const link = this.source.link ?? ((/** @type {any} */ { name }) => make("bdi", {}, name));
    this.sources.replaceChildren(
      ...(documents.length
        ? [make("h4", {}, "Documents"), make("ul", {}, ...documents.map((each) => make("li", {}, link(each))))] // prettier-ignore
        : []),
      ...(passages.length
        ? [make("h4", {}, "Passages"), make("ul", {}, ...passages.map((each) => make("li", {}, link(each), make("blockquote", { dir: "auto" }, each.text))))] // prettier-ignore
        : []),
    );
    this.listNeighbors();
    this.source.onDetails?.(details, this.added);
  }

  listNeighbors() {
    const { selected, details } = this;
    if (!selected) {
      return;
    }
    const number = this.numbers.get(selected.id) ?? -1;
    const { nodes, edges } = this.data;
    const drawn = edges
      .filter(({ source, target }) => source === number || target === number)
      .map(({ source, target, name, weight }) => {
        const other = nodes[source === number ? target : source];
        return { id: other.id, name: other.name, type: other.type, relation: name, forward: source === number, weight }; // prettier-ignore
      });
    const all = details?.neighbors ?? drawn;
    const seen = all.filter(({ type, relation }) => !this.hiddenTypes.has(type) && !this.hiddenRelations.has(relation)); // prettier-ignore
    const before = this.items[this.active];
    const kept = seen.findIndex(({ id, relation }) => before?.id === id && before?.relation === relation); // prettier-ignore
    this.fill(`Neighbours (${seen.length})`, seen, Math.max(kept, 0));
  }

  // The list

  /**
   * @param {string} title
   * @param {(Item & Partial<Neighbor> & {note?: string})[]} items
   * @param {number} [active]
   */
  fill(title, items, active = 0) {
    this.items = items;
    this.active = active;
    this.listed = Math.max(MOST_LISTED, active + 1);
    setText(this.listTitle, title);
    this.drawList();
  }

  drawList() {
    const shown = this.items.slice(0, this.listed);
    this.list.replaceChildren(
      ...shown.map(({ name, type, relation, forward, note, weight }, i) =>
        make(
          "li",
          {
            role: "option",
            id: `${this.name}-${i}`,
            "aria-selected": String(i === this.active),
            "aria-setsize": this.items.length,
            "aria-posinset": i + 1,
            title: weight === undefined ? name : `${name}: weight ${weight}`,
          },
          relation && make("span", { class: "kb-graph-relation" }, forward ? "" : "← ", spoken(relation), forward ? " →" : ""), // prettier-ignore
          note === undefined && markOf(type),
          make("bdi", { class: "kb-graph-name" }, name),
          " ",
          make("small", {}, spoken(type)),
          note && make("span", { class: "kb-graph-note" }, note),
        ),
      ),
    );
    this.more.hidden = this.items.length <= this.listed;
    this.more.textContent = `Show more (${(this.items.length - this.listed).toLocaleString("en")})`;
    this.setActive(Math.min(this.active, Math.max(shown.length - 1, 0)), false);
  }

  listMore() {
    this.listed += MOST_LISTED;
    this.drawList();
  }

  /** Let the picture show what is listed, and all else faintly. */
  markListed() {
    const drawn = this.items.flatMap(({ id }) => this.numbers.get(id) ?? []);
    this.canvas.change({ marked: new Set(drawn) });
  }

  /**
   * @param {number} place
   * @param {boolean} [marks]
   */
  setActive(place, marks = true) {
    this.list.children[this.active]?.setAttribute("aria-selected", "false");
    this.active = place;
    const option = this.list.children[place];
    if (!option) {
      this.list.removeAttribute("aria-activedescendant");
      return;
    }
    option.setAttribute("aria-selected", "true");
    this.list.setAttribute("aria-activedescendant", option.id);
    if (marks) {
      const { top, bottom } = option.getBoundingClientRect();
      const frame = this.list.getBoundingClientRect();
      this.list.scrollTop += Math.min(top - frame.top, 0) + Math.max(bottom - frame.bottom, 0);
      this.markActive();
    }
  }

  /** Show in the picture which item the keys are at. */
  markActive() {
    const item = this.items[this.active];
    const focused = /** @type {Document} */ (this.list.getRootNode()).activeElement === this.list;
    this.canvas.change({ pointed: (focused ? this.numbers.get(item?.id) : -1) ?? -1 });
  }

  /** @param {KeyboardEvent} event */
  onListKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const last = this.list.children.length - 1;
    /** @type {Record<string, () => void>} */
    const does = {
      ArrowDown: () => this.setActive(Math.min(this.active + 1, last)),
      ArrowUp: () => this.setActive(Math.max(this.active - 1, 0)),
      PageDown: () => this.setActive(Math.min(this.active + 10, last)),
      PageUp: () => this.setActive(Math.max(this.active - 10, 0)),
      Home: () => this.setActive(0),
      End: () => this.setActive(last),
      Enter: () => this.items[this.active] && this.go(this.items[this.active]),
      " ": () => this.items[this.active] && this.go(this.items[this.active]),
      ArrowRight: () => this.items[this.active] && this.go(this.items[this.active]),
      ArrowLeft: () => this.selected && this.goBack(),
      Backspace: () => this.selected && this.goBack(),
      Escape: () => this.overview(),
    };
    if (Object.hasOwn(does, event.key)) {
      event.preventDefault();
      does[event.key]();
    }
    if (event.key !== "Tab") {
      event.stopPropagation();
    }
  }

  /**
   * @param {Event} event
   * @returns {number} of the option that it is about, or -1
   */
  optionOf(event) {
    const option = /** @type {Element} */ (event.target).closest("[role=option]");
    return option ? [...this.list.children].indexOf(option) : -1;
  }

  /** @param {MouseEvent} event */
  onListClick(event) {
    const place = this.optionOf(event);
    if (place >= 0) {
      this.setActive(place, false);
      this.go(this.items[place]);
    }
  }

  /** @param {MouseEvent} event */
  onListPoint(event) {
    const item = this.items[this.optionOf(event)];
    this.canvas.change({ pointed: (item && this.numbers.get(item.id)) ?? -1 });
  }

  /**
   * A pointer came to a node of the picture, or left it.
   *
   * @param {number} number
   */
  point(number) {
    if (number !== this.canvas.shown.pointed) {
      this.canvas.change({ pointed: number });
      this.canvasElement.style.cursor = number < 0 ? "" : "pointer";
      const node = this.data.nodes[number];
      this.hint.replaceChildren(...(node ? [make("bdi", {}, node.name), ` ${spoken(node.type)}, ${counted(this.canvas.near[number].size, "neighbour")}`] : [])); // prettier-ignore
    }
  }

  /** @param {string} text */
  say(text) {
    setText(this.status, text);
  }
}

export { GraphView };
