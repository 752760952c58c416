// The text of a document. It is HTML that Python has sanitised, and stands in a shadow root, so that
// its styles and ids cannot reach the page.
import { findPassage } from "../../export/assets/marking.js";
import { fillHtml, makeShadow } from "./html.js";

/**
 * @typedef {object} Text
 * @property {string} title
 * @property {string} html  sanitised
 * @property {string[]} links  addresses that lead to other documents
 * @property {string} anchor  the place to begin at, or ""
 * @property {string} passage  first and last words of the passage to mark, or ""
 * @property {number} serial  another one for each document that is opened
 */

/** Addresses that links of a document may have. */
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
        this.follow(href);
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
