// One document: what it is, stars, and its text. The text is HTML that Python has sanitised; it
// stands in a shadow root, so that its styles and ids cannot reach the page.
import { findPassage } from "../../export/assets/marking.js";
import { make, makeLink } from "../../export/assets/elements.js";
import { View, widgetOf } from "./dom.js";
import { fillHtml, makeShadow } from "./html.js";
import { makeStars, showStars } from "./stars.js";

/**
 * @typedef {object} State
 * @property {string} title
 * @property {string} about  what it is, in a line
 * @property {string} link  an address of the web, or ""
 * @property {string} place  where the document comes from
 * @property {string[]} facts
 * @property {string} badge  stale, gone, or ""
 * @property {number} stars  the reader's rating, or 0
 * @property {string} rated  what others said
 * @property {boolean} undo
 * @property {string} html  sanitised
 * @property {string[]} links  addresses that lead to other documents of the knowledge base
 * @property {string} anchor  the place to begin at, or ""
 * @property {string} passage  first and last words of the passage to mark, or ""
 * @property {number} serial  another one for each document that is opened
 * @property {string} note  what is left out, or what to do where no document is open
 */

/** Addresses that links of a document may have. */
const ALLOWED = /^(#|https?:|mailto:)/i;

class DocumentView extends View {
  /**
   * @param {import("./dom.js").Model} model
   * @param {HTMLElement} el
   */
  constructor(model, el) {
    super(model, el);
    this.serial = -1;
    /** @type {string | null} */
    this.html = null;
    /** @type {Set<string>} */
    this.links = new Set();
    this.title = make("h3", { class: "kbkit-article-title" });
    this.about = make("p", { class: "kbkit-about", dir: "auto" });
    this.facts = make("div", { class: "kbkit-where" });
    const { stars, group } = makeStars((score) => this.send("rate", { score }));
    this.stars = stars;
    const undo = { class: "kbkit-act", type: "button", title: "Take back the rating" };
    this.undo = make("button", { ...undo, onclick: () => this.send("undo") }, "Undo");
    this.rated = make("span", { class: "kbkit-rated" });
    const actions = make("div", { class: "kbkit-actions" }, group, this.undo, this.rated);
    this.header = make("header", {}, this.title, this.about, this.facts, actions);
    this.note = make("p", { class: "kbkit-tree-note" });
    const page = makeShadow({
      class: "kbkit-page",
      role: "region",
      tabindex: 0,
      "data-lm-suppress-shortcuts": "true",
    });
    this.page = page.host;
    this.text = page.inside;
    this.text.addEventListener("click", (event) => this.onClick(event));
    const parts = [this.header, this.note, this.page];
    el.replaceChildren(make("article", { class: "kbkit-article kbkit-cards" }, parts));
    this.drawOn("state", () => this.draw());
  }

  draw() {
    /** @type {State} */
    const state = this.model.get("state");
    this.links = new Set(state.links);
    const there = state.title !== "";
    this.header.hidden = !there;
    this.page.hidden = !there;
    this.note.hidden = state.note === "";
    this.note.textContent = state.note;
    this.title.replaceChildren(makeLink(state.link, {}, make("bdi", {}, state.title)));
    this.about.textContent = state.about;
    this.about.title = state.about;
    this.about.hidden = state.about === "";
    const badges = state.badge ? [make("span", { class: "kbkit-badge" }, state.badge)] : [];
    const facts = state.facts.map((fact) => make("span", {}, fact));
    const place = make("bdi", { class: "kbkit-place", title: state.place }, state.place);
    this.facts.replaceChildren(...badges, ...facts, place);
    showStars(this.stars, state.stars);
    this.undo.style.visibility = state.undo ? "visible" : "hidden";
    this.rated.textContent = state.rated;
    this.page.setAttribute("aria-label", `Text of ${state.title}`);
    if (state.html !== this.html) {
      this.html = state.html;
      fillHtml(this.text, state.html, ALLOWED);
    }
    if (state.serial !== this.serial) {
      this.serial = state.serial;
      this.page.scrollTop = 0;
      const begin = this.go(state.anchor);
      this.mark(state.passage, begin);
    }
  }

  /**
   * Links to a place in this document or to another one must not change the page's address.
   *
   * @param {MouseEvent} event
   */
  onClick(event) {
    const link = event.target instanceof Element && event.target.closest("a[href]");
    const href = (link && link.getAttribute("href")) || "";
    if (href.startsWith("#")) {
      event.preventDefault();
      if (this.links.has(href)) {
        this.send("follow", { href });
      } else {
        this.go(href.slice(1));
      }
    }
  }

  /**
   * Mark a passage, in place of the one before, and bring it into view.
   *
   * @param {string} ends
   * @param {Element | null} place  where it is looked for
   */
  mark(ends, place) {
    this.text.querySelectorAll(".passage").forEach((one) => one.classList.remove("passage"));
    const blocks = findPassage(this.text, ends, place)?.blocks ?? [];
    for (const block of blocks) {
      block.classList.add("passage");
    }
    if (blocks.length) {
      const { top, height } = this.page.getBoundingClientRect();
      const begins = blocks[0].getBoundingClientRect().top - top;
      if (begins < 0 || begins > height * 0.7) {
        this.page.scrollTop += begins - height * 0.3;
      }
    }
  }

  /**
   * Go to a place in the document.
   *
   * @param {string} anchor
   */
  go(anchor) {
    let name = anchor;
    try {
      name = decodeURIComponent(anchor);
    } catch {
      // a bare percent sign
    }
    const target = (name && this.page.shadowRoot?.getElementById(name)) || null;
    if (target) {
      const top = target.getBoundingClientRect().top - this.page.getBoundingClientRect().top;
      this.page.scrollTop += top - 8;
    }
    return target;
  }
}

export default widgetOf(DocumentView);
