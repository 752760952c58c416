// The view of a graph in panels and on pages: its picture, filters, and an equivalent list for the
// keyboard.
//
//     const view = new GraphView(element, source);
//     view.show({ nodes, edges, total });         // in the form of GraphLayout.to_dict()
//     view.showGaps([{ id, kind, name, reason }]);
//     view.go({ id: "entity:...", name: "...", type: "..." });
//     view.close();
import { GraphCanvas } from "./canvas.js";
import { make, makeButton, setText } from "./elements.js";
import { COLOURS, colourOf, counted, markOf, spoken } from "./marks.js";
import { NodeList } from "./nodelist.js";

/**
 * @typedef {import("./nodelist.js").Item} Item
 * @typedef {import("./nodelist.js").Neighbor} Neighbor
 * @typedef {object} GraphData
 * @property {(import("./canvas.js").GraphNode)[]} nodes  the most important first
 * @property {(import("./canvas.js").GraphEdge)[]} edges
 * @property {number} total  number of all nodes
 * @typedef {object} Details  data of a node
 * @property {Item} item
 * @property {string} description
 * @property {string[]} aliases
 * @property {[string, string][]} facts  labels and values
 * @property {Neighbor[]} neighbors  the strongest first
 * @property {any[]} documents  arguments of `link`, with a `name`
 * @property {any[]} passages  arguments of `link`, with a `name` and a `text`
 * @typedef {object} Source  loads further data for a view
 * @property {(id: string) => Promise<Details>} details
 * @property {(id: string) => Promise<GraphData | null>} around  the surroundings of an undrawn node
 * @property {(text: string) => Promise<Item[]>} [find]  undrawn nodes, by name
 * @property {(thing: any) => Node} link  a document or a passage as a link
 * @property {(details: Details | null, place: HTMLElement) => void} [onDetails]  may add elements
 */

const PAUSE = 150; // milliseconds after a key
const FIRST = 30; // nodes drawn at first: a large graph would be a tangle
let graphs = 0;

export class GraphView {
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
    this.whole = this.data;
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
    this.drawsAll = false;
    /** @type {Item[]} what was selected before */
    this.trail = [];
    /** @type {Details | null} */
    this.details = null;
    this.asked = 0;
    this.timer = 0;
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
    this.gapButton = makeButton("Gaps", () => this.toggleGaps(), { "aria-pressed": "false" });
    this.gapButton.hidden = true;
    this.allButton = makeButton("", () => this.toggleAll(), { "aria-pressed": "false" });
    this.types = make("div", { class: "kb-graph-chips", role: "group", "aria-label": "Types" });
    this.relations = make("div", { class: "kb-graph-chips", role: "group", "aria-label": "Relations" }); // prettier-ignore
    this.relationBox = make("details", { class: "kb-graph-relations" }, make("summary", {}, "Relations"), this.relations); // prettier-ignore
    this.canvasElement = make("canvas", { tabindex: 0, role: "application" });
    this.hint = make("div", { class: "kb-graph-hint", "aria-hidden": "true" });
    this.notice = make("div", { class: "kb-graph-notice" });
    /** @type {(label: string, text: string, action: () => void) => HTMLElement} */
    const control = (label, text, action) =>
      makeButton(text, action, { "aria-label": label, title: label });
    const controls = make(
      "div",
      { class: "kb-graph-zoom" },
      control("Zoom in", "+", () => this.canvas.view.zoom(1.5)),
      control("Zoom out", "−", () => this.canvas.view.zoom(1 / 1.5)),
      control("Fit to the frame", "⤢", () => this.canvas.view.fitAll()),
    );
    this.picture = make("div", { class: "kb-graph-picture" }, this.canvasElement, this.hint, this.notice, controls); // prettier-ignore
    this.back = makeButton("← Back", () => this.goBack(), { class: "kb-graph-back" });
    this.title = make("h3", { class: "kb-graph-title", id: `${this.name}-title` });
    this.about = make("div", { class: "kb-graph-about" });
    this.added = make("div", { class: "kb-graph-added" });
    this.list = new NodeList(this.name, {
      onGo: (item) => this.go(item),
      onBack: () => this.selected && this.goBack(),
      onLeave: () => this.overview(),
      onPoint: (item) => this.canvas.change({ pointed: this.numbers.get(item?.id ?? "") ?? -1 }),
    });
    this.sources = make("div", { class: "kb-graph-sources" });
    const side = make(
      "section",
      { class: "kb-graph-side", "aria-label": "What is selected, and its neighbours" },
      this.back,
      this.title,
      this.about,
      this.added,
      ...this.list.elements,
      this.sources,
    );
    this.status = make("p", { class: "kb-graph-status", role: "status" });
    const label = make("label", { for: this.query.id }, "Find");
    const bar = make(
      "div",
      { class: "kb-graph-bar" },
      label,
      this.query,
      this.allButton,
      this.gapButton,
    );
    const columns = make("div", { class: "kb-graph-both" }, this.picture, side);
    this.root = make("div", { class: "kb-graph" }, bar, this.types, this.relationBox, columns, this.status); // prettier-ignore
    root.replaceChildren(this.root);
    this.canvas = new GraphCanvas(this.canvasElement, {
      onSelect: (number) => (number < 0 ? this.overview() : this.go(this.data.nodes[number])),
      onPoint: (number) => this.point(number),
      signal: this.ended.signal,
    });
    // a panel is filled before it is attached to the page, which has its colours
    const sizes = new ResizeObserver(() => this.readLooks());
    sizes.observe(this.root);
    // JupyterLab, VS Code and the site mark the body with the name of the theme
    const themes = new MutationObserver(() => this.readLooks());
    themes.observe(document.body, { attributes: true });
    this.ended.signal.addEventListener("abort", () => {
      sizes.disconnect();
      themes.disconnect();
    });
  }

  close() {
    this.ended.abort();
    clearTimeout(this.timer);
  }

  /** Read the colours of the page, which change with its theme. */
  readLooks() {
    const looks = getComputedStyle(this.root);
    const read = (/** @type {string} */ name) => looks.getPropertyValue(`--kb-graph-${name}`);
    const colours = new Map([...COLOURS, "other"].map((type) => [type, read(type)]));
    const [page, text, line, accent, gap] = ["page", "text", "line", "accent", "gap"].map(read);
    const fill = (/** @type {string} */ type) =>
      /** @type {string} */ (colours.get(colourOf(type)));
    this.canvas.paintWith({ page, text, line, accent, gap, fill, font: looks.fontFamily });
  }

  /**
   * Replace the graph; the selection stays if the new graph contains it.
   *
   * @param {GraphData} data
   * @param {string} [notice]  text for an empty graph
   */
  show(data, notice = "Nothing is related yet.") {
    this.whole = data;
    this.notice.textContent = data.nodes.length ? "" : notice;
    this.root.classList.toggle("kb-graph-empty", !data.nodes.length);
    this.drawData(data);
    if (this.selected) {
      this.choose(this.selected, false);
    } else {
      this.relist(); // text typed meanwhile stays
    }
  }

  /** @param {GraphData} data */
  drawData(data) {
    this.data = data;
    this.numbers = new Map(data.nodes.map(({ id }, number) => [id, number]));
    this.canvas.show(data.nodes, data.edges);
    this.drawFilters();
    this.filter();
    if (this.canvas.view.fitted) {
      this.canvas.view.fitAll(false);
    }
    this.allButton.hidden = data !== this.whole || data.nodes.length <= FIRST;
    this.allButton.textContent = `Draw all ${data.nodes.length.toLocaleString("en")}`;
    this.drawGaps();
    const [nodes, relations] = [counted(data.nodes.length, "node"), counted(data.edges.length, "relation")]; // prettier-ignore
    this.canvasElement.setAttribute(
      "aria-label",
      `Picture of ${nodes} and ${relations}: arrow keys move it, plus and minus zoom, 0 shows all. The list beside it says the same.`,
    );
  }

  /** @param {{id: string, kind: string, name: string, reason: string}[]} gaps */
  showGaps(gaps) {
    this.gaps = gaps;
    this.drawGaps();
    if (this.details) {
      this.showDetails(this.details);
    }
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
    const items = this.gaps.map(({ id, name, kind, reason }) => ({ id, name, type: kind, reason, })); // prettier-ignore
    this.list.fill("What the documentation lacks", items);
    this.markListed();
    this.say(counted(items.length, "gap"));
  }

  // Filters

  drawFilters() {
    const { nodes, edges } = this.data;
    /** @type {(values: string[]) => [string, number][]} */
    const counts = (values) => {
      const numberOf = new Map();
      values.forEach((value) => numberOf.set(value, (numberOf.get(value) ?? 0) + 1));
      return [...numberOf].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    };
    /** @type {(hidden: Set<string>, marks: boolean) => (pair: [string, number]) => HTMLElement} */
    const chip =
      (hidden, marks) =>
      ([value, count]) => {
        const number = make("small", {}, count.toLocaleString("en"));
        const content = [marks && markOf(value), make("bdi", {}, spoken(value)), number];
        const toggle = () => {
          hidden.has(value) ? hidden.delete(value) : hidden.add(value);
          button.setAttribute("aria-pressed", String(!hidden.has(value)));
          this.filter();
          this.relist();
        };
        const button = makeButton(content, toggle, { "aria-pressed": String(!hidden.has(value)) });
        return button;
      };
    this.types.replaceChildren(...counts(nodes.map(({ type }) => type)).map(chip(this.hiddenTypes, true))); // prettier-ignore
    this.relations.replaceChildren(...counts(edges.map(({ name }) => name)).map(chip(this.hiddenRelations, false))); // prettier-ignore
    this.relationBox.hidden = !edges.length;
  }

  toggleAll() {
    this.drawsAll = !this.drawsAll;
    this.allButton.setAttribute("aria-pressed", String(this.drawsAll));
    this.filter();
    this.canvas.view.fitAll();
  }

  /**
   * Test whether a node is drawn: it is important, listed, or near the selected one.
   *
   * @returns {(number: number) => boolean}
   */
  drawn() {
    const { data, selected, canvas } = this;
    if (this.drawsAll || data !== this.whole || data.nodes.length <= FIRST) {
      return () => true;
    }
    const number = this.numbers.get(selected?.id ?? "") ?? -1;
    const near = new Set([number, ...(canvas.near[number] ?? []), ...(canvas.shown.marked ?? [])]);
    return (index) => index < FIRST || near.has(index);
  }

  filter() {
    const { nodes, edges } = this.data;
    const drawn = this.drawn();
    this.canvas.change({
      nodes: Uint8Array.from(nodes, ({ type }, number) => Number(!this.hiddenTypes.has(type) && drawn(number))), // prettier-ignore
      edges: Uint8Array.from(edges, ({ name }) => Number(!this.hiddenRelations.has(name))),
    });
  }

  /** Update the list after a change of the picture. */
  relist() {
    if (this.selected) {
      this.listNeighbors();
    } else if (this.gapButton.getAttribute("aria-pressed") !== "true") {
      this.search();
    }
  }

  // Search

  /** @param {KeyboardEvent} event */
  onQueryKey(event) {
    if (event.key === "Enter" || event.key === "ArrowDown") {
      event.preventDefault();
      const searching = this.search();
      if (event.key === "Enter") {
        this.goFirst(searching);
      }
      this.list.focus();
    } else if (event.key === "Escape") {
      this.query.value = "";
      this.overview();
    }
    event.stopPropagation();
  }

  /** @param {Promise<void>} found  fulfilled when undrawn nodes are listed */
  async goFirst(found) {
    const { asked } = this;
    if (!this.list.items.length) {
      await found;
    }
    if (asked === this.asked && this.list.items.length) {
      this.go(this.list.items[0]);
    }
  }

  /** List nodes whose names contain the searched text; without a text, the most important. */
  async search() {
    const text = this.query.value.trim().toLowerCase();
    const asked = (this.asked += 1);
    this.leave();
    if (this.data !== this.whole) {
      this.drawData(this.whole);
    }
    const { nodes } = this.data;
    const visible = nodes.filter(({ type }) => !this.hiddenTypes.has(type));
    if (!text) {
      this.list.fill("Most related", visible);
      this.canvas.change({ marked: null });
      this.filter();
      const { total } = this.data;
      const all = total > nodes.length ? ` of ${total.toLocaleString("en")}` : "";
      const hidden = nodes.length - visible.length;
      this.say(nodes.length ? `${nodes.length.toLocaleString("en")}${all} nodes${hidden ? `, ${hidden} hidden` : ""}` : ""); // prettier-ignore
      return;
    }
    /** @type {(item: Item) => number} */
    const rank = ({ name }) => {
      const low = name.toLowerCase();
      return low === text ? 0 : low.startsWith(text) || low.endsWith(`.${text}`) ? 1 : 2;
    };
    const matches = visible.filter(({ name }) => name.toLowerCase().includes(text));
    matches.sort((a, b) => rank(a) - rank(b));
    const title = `Names with “${this.query.value.trim()}”`;
    this.list.fill(title, matches);
    this.markListed();
    this.say(`${matches.length.toLocaleString("en")} found`);
    if (this.source.find) {
      const undrawn = (await this.source.find(text)).filter(({ id }) => !this.numbers.has(id));
      if (asked === this.asked && undrawn.length) {
        const items = [...matches, ...undrawn].sort((a, b) => rank(a) - rank(b));
        this.list.fill(title, items);
        this.say(`${items.length.toLocaleString("en")} found`);
      }
    }
  }

  // Selection

  /** Clear the selection and show all. */
  overview() {
    this.query.value = "";
    this.search();
  }

  /** Clear the selection. */
  leave() {
    clearTimeout(this.timer);
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
    this.list.focus();
  }

  /**
   * @param {Item} item
   * @param {boolean} [reveals]
   */
  async choose(item, reveals = true) {
    const asked = (this.asked += 1);
    clearTimeout(this.timer); // a pending search would undo it
    if (!this.numbers.has(item.id)) {
      const data = await this.source.around(item.id);
      if (asked !== this.asked) {
        return;
      }
      if (!data?.nodes.some(({ id }) => id === item.id)) {
        this.overview();
        this.say(`${item.name} is not there`);
        return;
      }
      this.drawData(data);
    }
    this.selected = item;
    this.details = null;
    this.gapButton.setAttribute("aria-pressed", "false");
    const number = this.numbers.get(item.id) ?? -1;
    this.canvas.change({ selected: number, marked: null });
    this.filter();
    if (reveals && number >= 0) {
      this.canvas.reveal(number);
    }
    this.back.hidden = false;
    this.title.replaceChildren(markOf(item.type), make("bdi", {}, item.name), make("small", {}, spoken(item.type))); // prettier-ignore
    this.about.replaceChildren();
    this.sources.replaceChildren();
    this.source.onDetails?.(null, this.added);
    this.listNeighbors();
    this.say(`${item.name}, ${spoken(item.type)}: ${counted(this.list.items.length, "neighbour")}`);
    const details = await this.source.details(item.id);
    if (asked === this.asked && details) {
      this.showDetails(details);
    }
  }

  /** @param {Details} details */
  showDetails(details) {
    this.details = details;
    const { description, aliases, facts, documents, passages, item } = details;
    const gaps = this.gaps.filter(({ id }) => id === item.id);
    const names = make("bdi", {}, item.name);
    this.title.replaceChildren(markOf(item.type), names, make("small", {}, spoken(item.type)));
    this.about.replaceChildren(
      ...gaps.map(({ kind, reason }) => make("p", { class: "kb-graph-gap" }, make("b", {}, spoken(kind)), `: ${reason}`)), // prettier-ignore
      ...(description ? [make("p", { dir: "auto" }, description)] : []),
      ...(aliases.length ? [make("p", { class: "kb-graph-soft" }, "Also ", ...aliases.flatMap((alias, i) => [i ? ", " : "", make("bdi", {}, alias)]))] : []), // prettier-ignore
      ...(facts.length ? [make("dl", {}, ...facts.flatMap(([label, value]) => [make("dt", {}, label), make("dd", {}, make("bdi", {}, value))]))] : []), // prettier-ignore
    );
    const { link } = this.source;
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
    const visible = all.filter(({ type, relation }) => !this.hiddenTypes.has(type) && !this.hiddenRelations.has(relation)); // prettier-ignore
    const before = this.list.items[this.list.active];
    const active = visible.findIndex(({ id, relation }) => before?.id === id && before?.relation === relation); // prettier-ignore
    this.list.fill(`Neighbours (${visible.length})`, visible, Math.max(active, 0));
  }

  /** Highlight listed nodes in the picture; draw others faintly. */
  markListed() {
    const drawn = this.list.items.flatMap(({ id }) => this.numbers.get(id) ?? []);
    this.canvas.change({ marked: new Set(drawn) });
    this.filter();
  }

  /**
   * The pointer entered or left a node of the picture.
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
