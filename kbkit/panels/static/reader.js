// One document: what it is, stars, and its text. The text is HTML that Python has sanitised; it
// stands in a shadow root, so that its styles and ids cannot reach the page.
import { drawn, make, makeLink } from "./dom.js";
import { fillRendered, sheltered } from "./rendered.js";
import { makeStars, showStars } from "./stars.js";

/**
 * @typedef {object} State
 * @property {string} title
 * @property {string} link  an address of the web, or ""
 * @property {string} place  where the document comes from
 * @property {string[]} facts
 * @property {string} badge  stale, gone, or ""
 * @property {number} stars  the reader's rating, or 0
 * @property {string} rated  what others said
 * @property {boolean} undo
 * @property {string} html  sanitised
 * @property {string[]} inner  addresses that lead to other documents of the knowledge base
 * @property {string} anchor  the place to begin at, or ""
 * @property {number} serial  another one for each document that is opened
 * @property {string} note  what is left out, or what to do where no document is open
 */

/** Addresses that links of a document may have. */
const LEADS = /^(#|https?:|mailto:)/i;

export default {
  /** @param {import("./dom.js").Widget} widget */
  render({ model, el }) {
    const reader = new Reader(el, model.get("style"));
    return drawn(model, (state, send) => reader.draw(state, send));
  },
};

class Reader {
  /**
   * @param {HTMLElement} el
   * @param {string} style
   */
  constructor(el, style) {
    this.serial = -1;
    /** @type {string | null} */
    this.html = null;
    /** @type {import("./dom.js").Send} */
    this.send = () => {};
    /** @type {Set<string>} */
    this.inner = new Set();
    this.title = make("h3", { class: "kbkit-opened-title" });
    this.facts = make("div", { class: "kbkit-where" });
    const { stars, group } = makeStars((score) => this.send("rate", { score }));
    this.stars = stars;
    this.undo = make("button", {
      class: "kbkit-act",
      type: "button",
      title: "Take back the rating",
    });
    this.undo.textContent = "Undo";
    this.undo.addEventListener("click", () => this.send("undo"));
    this.rated = make("span", { class: "kbkit-rated" });
    const actions = make("div", { class: "kbkit-actions" }, group, this.undo, this.rated);
    this.header = make("header", {}, this.title, this.facts, actions);
    this.note = make("p", { class: "kbkit-tree-note" });
    this.page = make("div", {
      class: "kbkit-page",
      role: "region",
      tabindex: 0,
      "data-lm-suppress-shortcuts": "true",
    });
    this.text = sheltered(this.page, style);
    this.text.className = "text";
    this.text.addEventListener("click", (event) => this.clicked(event));
    this.root = make(
      "article",
      { class: "kbkit-opened kbkit-cards" },
      this.header,
      this.note,
      this.page,
    );
    el.replaceChildren(this.root);
  }

  /**
   * @param {State} state
   * @param {import("./dom.js").Send} send
   */
  draw(state, send) {
    this.send = send;
    this.inner = new Set(state.inner);
    const there = state.title !== "";
    this.header.hidden = !there;
    this.page.hidden = !there;
    this.note.hidden = state.note === "";
    this.note.textContent = state.note;
    this.title.replaceChildren(makeLink(state.link, {}, make("bdi", {}, state.title)));
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
      fillRendered(this.text, state.html, LEADS);
    }
    if (state.serial !== this.serial) {
      this.serial = state.serial;
      this.page.scrollTop = 0;
      this.go(state.anchor);
    }
  }

  /**
   * Links to a place in this document or to another one must not change the page's address.
   *
   * @param {MouseEvent} event
   */
  clicked(event) {
    const link = event.target instanceof Element && event.target.closest("a[href]");
    const href = (link && link.getAttribute("href")) || "";
    if (href.startsWith("#")) {
      event.preventDefault();
      if (this.inner.has(href)) {
        this.send("follow", { href });
      } else {
        this.go(href.slice(1));
      }
    }
  }

  /** @param {string} anchor */
  go(anchor) {
    let name = anchor;
    try {
      name = decodeURIComponent(anchor);
    } catch {
      // a bare percent sign
    }
    const target = name && this.page.shadowRoot?.getElementById(name);
    if (target) {
      const top = target.getBoundingClientRect().top - this.page.getBoundingClientRect().top;
      this.page.scrollTop += top - 8;
    }
  }
}
