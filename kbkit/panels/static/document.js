// One document: facts, stars and text.
import { make, makeLink } from "../../export/assets/elements.js";
import { View, widgetOf } from "./dom.js";
import { Reader } from "./reader.js";
import { makeStars, showStars } from "./stars.js";

/**
 * @typedef {import("./reader.js").Text & About} State
 * @typedef {object} About
 * @property {string} title
 * @property {string} about  description in one line
 * @property {string} link  an address of the web, or ""
 * @property {string} place  where the document comes from
 * @property {string[]} facts
 * @property {string} badge  stale, gone, or ""
 * @property {number} stars  the reader's rating, or 0
 * @property {string} rated  ratings of others
 * @property {string} note  omissions, or a hint if no document is open: then the state has only an
 *     empty title and a serial number
 */

class DocumentView extends View {
  /** @param {import("./dom.js").Widget} widget */
  constructor(widget) {
    super(widget);
    this.title = make("h3", { class: "kbkit-article-title" });
    this.about = make("p", { class: "kbkit-about", dir: "auto" });
    this.facts = make("div", { class: "kbkit-where" });
    const { stars, group } = makeStars((score) => this.send("rate", { score }));
    this.stars = stars;
    this.rated = make("span", { class: "kbkit-rated" });
    const actions = make("div", { class: "kbkit-actions" }, group, this.rated);
    this.header = make("header", {}, this.title, this.about, this.facts, actions);
    this.note = make("p", { class: "kbkit-tree-note" });
    this.reader = new Reader((href) => this.send("follow", { href }));
    const parts = [this.header, this.note, this.reader.page];
    this.el.replaceChildren(make("article", { class: "kbkit-article kbkit-cards" }, parts));
    this.drawOn("state", () => this.draw());
  }

  draw() {
    /** @type {State} */
    const state = this.model.get("state");
    const isOpen = state.title !== "";
    this.header.hidden = !isOpen;
    this.reader.page.hidden = !isOpen;
    this.note.hidden = state.note === "";
    this.note.textContent = state.note;
    if (!isOpen) {
      return;
    }
    this.title.replaceChildren(makeLink(state.link, {}, make("bdi", {}, state.title)));
    this.about.textContent = state.about;
    this.about.title = state.about;
    this.about.hidden = state.about === "";
    const badges = state.badge ? [make("span", { class: "kbkit-badge" }, state.badge)] : [];
    const facts = state.facts.map((fact) => make("span", {}, fact));
    const place = make("bdi", { class: "kbkit-place", title: state.place }, state.place);
    this.facts.replaceChildren(...badges, ...facts, place);
    showStars(this.stars, state.stars);
    this.rated.textContent = state.rated;
    this.reader.show(state);
  }
}

export const widget = widgetOf(DocumentView);
