// The text of a document: HTML sanitised by Python, in a shadow root that keeps its styles and ids
// off the page.
import { findPassage } from "../../export/assets/marking.js";
import { fillHtml, makeShadow } from "./html.js";

/**
 * @typedef {object} Text
 * @property {string} title
 * @property {string} html  sanitised
 * @property {string[]} links  addresses that lead to other documents
 * @property {string} anchor  initial position, or ""
 * @property {string} passage  first and last words of the passage to mark, or ""
 * @property {number} serial  changes with each opened document
 */

/** Allowed addresses of links. */
const ALLOWED = /^(#|https?:|mailto:)/i;

export class Reader {
  /** @param {(href: string) => void} follow  opens another document */
  constructor(follow) {
    this.follow = follow;
    this.serial = -1;
    /** @type {string | null} */
    this.html = null;
    /** @type {Set<string>} */
    this.links = new Set();
    const page = makeShadow({
      class: "kbkit-page",
      role: "region",
      tabindex: 0,
      "data-lm-suppress-shortcuts": "true",
    });
    this.page = page.host;
    this.text = page.inside;
    this.text.addEventListener("click", (event) => this.onClick(event));
  }

  /** @param {Text} text */
  show({ title, html, links, anchor, passage, serial }) {
    this.links = new Set(links);
    this.page.setAttribute("aria-label", `Text of ${title}`);
    if (html !== this.html) {
      this.html = html;
      fillHtml(this.text, html, ALLOWED);
    }
    if (serial !== this.serial) {
      this.serial = serial;
      this.page.scrollTop = 0;
      this.mark(passage, this.go(anchor));
    }
  }

  /**
   * Follow links within and between documents without changing the page's address.
   *
   * @param {MouseEvent} event
   */
  onClick(event) {
    const link = event.target instanceof Element && event.target.closest("a[href]");
    const href = (link && link.getAttribute("href")) || "";
    if (href.startsWith("#")) {
      event.preventDefault();
      if (this.links.has(href)) {
        this.follow(href);
      } else {
        this.go(href.slice(1));
      }
    }
  }

  /**
   * Mark a passage, in place of the previous one, and scroll to it.
   *
   * @param {string} ends
   * @param {Element | null} place  where to search
   */
  mark(ends, place) {
    this.text.querySelectorAll(".passage").forEach((block) => block.classList.remove("passage"));
    const blocks = findPassage(this.text, ends, place)?.blocks ?? [];
    for (const block of blocks) {
      block.classList.add("passage");
    }
    if (blocks.length) {
      const { top, height } = this.page.getBoundingClientRect();
      const offset = blocks[0].getBoundingClientRect().top - top;
      if (offset < 0 || offset > height * 0.7) {
        this.page.scrollTop += offset - height * 0.3;
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
