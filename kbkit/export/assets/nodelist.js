// The list next to the picture of a graph: an equivalent listbox for the keyboard.
import { focusIn, make, makeButton, placeAfter, setText, showIn } from "./elements.js";
import { markOf, spoken } from "./marks.js";

/**
 * @typedef {{id: string, name: string, type: string}} Item
 * @typedef {Item & {relation: string, forward: boolean, weight: number}} Neighbor
 * @typedef {Item & Partial<Neighbor> & {reason?: string}} Listed  a gap has a reason
 */

const MAX_LISTED = 100;

export class NodeList {
  /**
   * @param {string} name  prefix of the ids of its elements
   * @param {object} handlers
   * @param {(item: Listed) => void} handlers.onGo
   * @param {() => void} handlers.onBack
   * @param {() => void} handlers.onLeave
   * @param {(item: Listed | undefined) => void} handlers.onPoint  the item at the pointer or the
   *   keyboard's focus
   */
  constructor(name, handlers) {
    this.name = name;
    this.handlers = handlers;
    /** @type {Listed[]} */
    this.items = [];
    this.active = 0;
    this.listed = MAX_LISTED;
    this.title = make("h4", { class: "kb-graph-list-title", id: `${name}-list` });
    this.list = make("ul", {
      class: "kb-graph-list",
      role: "listbox",
      tabindex: 0,
      "aria-labelledby": `${name}-list`,
      // keeps notebooks from handling keys: d twice would delete a cell
      "data-lm-suppress-shortcuts": "true",
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event),
      onclick: (/** @type {MouseEvent} */ event) => this.onClick(event),
      onmousemove: (/** @type {MouseEvent} */ event) => this.onPoint(event),
      onmouseleave: () => handlers.onPoint(undefined),
      onfocus: () => handlers.onPoint(this.items[this.active]),
      onblur: () => handlers.onPoint(undefined),
    });
    this.more = makeButton("", () => this.listMore());
    this.elements = [this.title, this.list, this.more];
  }

  focus() {
    this.list.focus({ preventScroll: true });
  }

  /**
   * @param {string} title
   * @param {Listed[]} items
   * @param {number} [active]
   */
  fill(title, items, active = 0) {
    this.items = items;
    this.active = active;
    this.listed = Math.max(MAX_LISTED, active + 1);
    setText(this.title, title);
    this.draw();
    this.list.scrollTop = 0;
    this.setActive(this.active, focusIn(this.list) === this.list);
  }

  draw() {
    const { items } = this;
    const visible = items.slice(0, this.listed);
    this.list.replaceChildren(...visible.map((item, number) => this.option(item, number)));
    this.more.hidden = items.length <= this.listed;
    setText(this.more, `Show more (${(items.length - this.listed).toLocaleString("en")})`);
  }

  /**
   * @param {Listed} item
   * @param {number} number
   */
  option({ name, type, relation, forward, reason, weight }, number) {
    const attributes = {
      role: "option",
      id: `${this.name}-${number}`,
      "aria-selected": "false",
      "aria-setsize": this.items.length,
      "aria-posinset": number + 1,
      title: weight === undefined ? name : `${name}: weight ${weight}`,
    };
    const label = relation && `${forward ? "" : "← "}${spoken(relation)}${forward ? " →" : ""}`;
    return make(
      "li",
      attributes,
      label && make("span", { class: "kb-graph-relation" }, label),
      reason === undefined && markOf(type),
      make("bdi", { class: "kb-graph-name" }, name),
      " ",
      make("small", {}, spoken(type)),
      reason && make("span", { class: "kb-graph-note" }, reason),
    );
  }

  listMore() {
    this.listed += MAX_LISTED;
    this.draw();
    this.setActive(this.active, false);
  }

  /**
   * @param {number} number
   * @param {boolean} shows  whether to scroll it into view, here and in the picture
   */
  setActive(number, shows) {
    this.list.children[this.active]?.setAttribute("aria-selected", "false");
    this.active = number;
    const option = this.list.children[number];
    if (!option) {
      this.list.removeAttribute("aria-activedescendant");
      return;
    }
    option.setAttribute("aria-selected", "true");
    this.list.setAttribute("aria-activedescendant", option.id);
    if (shows) {
      showIn(this.list, option);
      this.handlers.onPoint(this.items[number]);
    }
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const place = placeAfter(event.key, this.active, this.list.children.length);
    const go = () => this.items[this.active] && this.handlers.onGo(this.items[this.active]);
    /** @type {Record<string, () => void>} */
    const actions = {
      Enter: go,
      " ": go,
      ArrowRight: go,
      ArrowLeft: () => this.handlers.onBack(),
      Backspace: () => this.handlers.onBack(),
      Escape: () => this.handlers.onLeave(),
    };
    if (place !== null) {
      event.preventDefault();
      this.setActive(place, true);
    } else if (Object.hasOwn(actions, event.key)) {
      event.preventDefault();
      actions[event.key]();
    }
    if (event.key !== "Tab") {
      event.stopPropagation();
    }
  }

  /**
   * @param {Event} event
   * @returns {number} number of the event's option, or -1
   */
  numberAt(event) {
    const option = /** @type {Element} */ (event.target).closest("[role=option]");
    return option ? [...this.list.children].indexOf(option) : -1;
  }

  /** @param {MouseEvent} event */
  onClick(event) {
    const number = this.numberAt(event);
    if (number >= 0) {
      this.setActive(number, false);
      this.handlers.onGo(this.items[number]);
    }
  }

  /** @param {MouseEvent} event */
  onPoint(event) {
    this.handlers.onPoint(this.items[this.numberAt(event)]);
  }
}
