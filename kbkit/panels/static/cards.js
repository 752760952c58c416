// The results of a search as cards, with keys to move between them, rate, select and open them.
import {
  focusIn,
  make,
  makeButton,
  makeLink,
  placeAfter,
  setText,
} from "../../export/assets/elements.js";
import { View, copyText, markSegments, widgetOf } from "./dom.js";
import { makePassage } from "./html.js";
import { makeStars, showStars } from "./stars.js";

/**
 * @typedef {import("./dom.js").Segments} Segments
 * @typedef {{html: string, hit: boolean, path: string}} Passage  one chunk of a document, sanitised
 * @typedef {object} Hit  what a card shows
 * @property {string} id
 * @property {number} rank
 * @property {boolean} follows  a passage of the same document
 * @property {string} title
 * @property {Segments} marked_title
 * @property {string} link  an address of the web, or ""
 * @property {string} about  description of its document
 * @property {{text: string, kind: string}[]} badges
 * @property {string} path  headings above the passage
 * @property {string} place  where the document comes from
 * @property {{text: string, exact: string}} age  when it was fetched
 * @property {{total: string, label: string, shares: {name: string, percent: number}[]}} score
 * @property {Segments} snippet
 * @property {number} stars  the reader's rating for this query, or 0
 * @property {string} rated  other ratings of it
 * @property {boolean} undo
 * @property {boolean} selected
 * @property {string} citation  Markdown
 * @property {{radius: number, passages: Passage[], more: boolean} | null} context
 * @typedef {object} State
 * @property {number} serial  changes with each search
 * @property {string} status
 * @property {string} problem
 * @property {{label: string, back: string} | null} breadcrumb  the passage that the results are like
 * @property {number} depth  steps back
 * @property {{title: string, text: string} | null} notice
 * @property {Hit[]} cards
 * @property {boolean} opens  whether documents of results can be shown
 * @property {number} selected
 */

/** @type {(opens: boolean) => string} */
const keys = (opens) =>
  `↓ ↑ move · 1–5 rate · U undo · C context · M more like this · ${opens ? "D document · " : ""}` +
  "X select · Y copy · Enter open · / search";
/** Milliseconds between checks for outside changes. */
const LOOK_PAUSE = 1000;
const PAGE = 3; // cards

/** @type {Record<string, string>} */
const LETTERS = { j: "ArrowDown", k: "ArrowUp" };

class CardsView extends View {
  /** @param {import("./dom.js").Widget} widget */
  constructor(widget) {
    super(widget);
    /** @type {Card[]} */
    this.cards = [];
    this.current = 0;
    this.serial = -1;
    this.looked = 0;
    this.opens = Boolean(this.model.get("state").opens);
    /** @type {string[]} ids of the cards that led to other results */
    this.trail = [];
    this.status = make("div", { class: "kbkit-status", role: "status" });
    this.problem = make("div", { class: "kbkit-status kbkit-problem", role: "alert" });
    this.back = makeButton("", () => this.send("back"));
    this.label = make("bdi", { class: "kbkit-like" });
    this.breadcrumb = make(
      "div",
      { class: "kbkit-breadcrumb", hidden: true },
      this.back,
      this.label,
    );
    this.notice = make("div", { class: "kbkit-notice" });
    this.list = make("ol", { class: "kbkit-list", "aria-label": "Results" });
    this.scroller = make("div", { class: "kbkit-results" }, this.notice, this.list);
    this.count = make("span");
    this.clear = makeButton("Clear", () => this.send("clear"));
    this.chosen = make("span", { class: "kbkit-chosen" }, this.count, this.clear);
    const foot = make(
      "div",
      { class: "kbkit-foot" },
      make("span", {}, keys(this.opens)),
      this.chosen,
    );
    this.root = make("div", { class: "kbkit-cards" });
    this.root.append(this.status, this.problem, this.breadcrumb, this.scroller, foot);
    this.el.replaceChildren(this.root);
    this.onKey((event) => this.onKeydown(event));
    const { signal } = this.ended;
    window.addEventListener("focus", () => this.look(), { signal });
    document.addEventListener("focusin", (event) => this.onFocus(event), { signal });
    this.drawOn("state", () => this.draw(this.model.get("state")));
  }

  /** @param {State} state */
  draw(state) {
    const focus = this.focused();
    this.showStatus(state.status);
    setText(this.problem, state.problem);
    this.problem.title = state.problem;
    this.status.hidden = Boolean(state.problem);
    this.problem.hidden = !state.problem;
    this.breadcrumb.hidden = state.breadcrumb === null;
    setText(this.back, state.breadcrumb ? `← ${state.breadcrumb.back}` : "");
    setText(this.label, state.breadcrumb?.label ?? "");
    this.notice.hidden = state.notice === null;
    const { title = "", text = "" } = state.notice ?? {};
    this.notice.replaceChildren(make("b", {}, title), make("span", {}, text));
    this.count.textContent = `${state.selected} selected`;
    this.chosen.style.visibility = state.selected ? "visible" : "hidden";
    this.fill(state.cards);
    if (state.serial !== this.serial) {
      this.serial = state.serial;
      this.scroller.scrollTop = 0;
      this.showFirst(state, focus);
    } else if (focus && !this.focused()) {
      this.go(Math.min(this.current, this.cards.length - 1));
    }
  }

  /** @param {string} text */
  showStatus(text) {
    setText(this.status, text);
    this.status.title = text;
  }

  /** @param {Hit[]} hits */
  fill(hits) {
    this.cards.splice(hits.length).forEach((card) => card.root.remove());
    this.cards.forEach((card, i) => card.fill(hits[i]));
    for (const hit of hits.slice(this.cards.length)) {
      const card = new Card(this, hit);
      this.cards.push(card);
      this.list.append(card.root);
    }
    this.setCurrent(Math.max(0, Math.min(this.current, hits.length - 1)));
  }

  /**
   * Start new results at the first card, or at the card that a reader returns to.
   *
   * @param {State} state
   * @param {boolean} focus  whether the results had the focus
   */
  showFirst(state, focus) {
    const returnId = this.trail.splice(state.depth)[0] ?? "";
    const place = Math.max(
      0,
      this.cards.findIndex((card) => card.hit.id === returnId),
    );
    this.setCurrent(place);
    if (focus) {
      this.go(place);
    } else if (returnId) {
      this.cards[place]?.article.scrollIntoView({ block: "nearest" });
    }
  }

  focused() {
    const active = focusIn(this.root);
    return active !== null && this.root.contains(active);
  }

  /**
   * The Tab key stops at one card and at its controls.
   *
   * @param {number} place
   */
  setCurrent(place) {
    this.current = place;
    this.cards.forEach((card, i) => card.reachable(i === place));
  }

  /** @param {number} place */
  go(place) {
    const card = this.cards[place];
    if (!card) {
      this.query()?.focus();
      return;
    }
    this.setCurrent(place);
    card.article.focus({ preventScroll: true });
    card.article.scrollIntoView({ block: "nearest" });
  }

  panel() {
    return this.root.closest(".kbkit-panel");
  }

  /** @returns {HTMLInputElement | null} */
  query() {
    return this.panel()?.querySelector(".kbkit-query input") ?? null;
  }

  /** @param {KeyboardEvent} event */
  onKeydown(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) {
      return;
    }
    if (event.target === this.query() && event.key === "ArrowDown" && this.cards.length > 0) {
      this.handled(event, () => this.go(this.current));
    } else if (event.target instanceof Node && this.list.contains(event.target)) {
      this.inList(event);
    } else if (event.key === "Escape" && this.focused() && this.trail.length > 0) {
      this.handled(event, () => this.send("back"));
    }
  }

  /** @param {KeyboardEvent} event */
  inList(event) {
    const card = this.cards[this.current];
    const press = event.key.toLowerCase();
    const key = LETTERS[press] ?? event.key;
    const place = placeAfter(key, this.current, this.cards.length, PAGE);
    if (key === "ArrowUp" && this.current === 0) {
      this.handled(event, () => this.query()?.focus());
    } else if (place !== null) {
      this.handled(event, () => this.go(place));
    } else if (/^[1-5]$/.test(press)) {
      this.handled(event, () => card.rate(Number(press)));
    } else if (press === "/") {
      this.handled(event, () => this.query()?.select());
    } else if (press === "escape") {
      this.handled(event, () => (this.trail.length ? this.send("back") : this.query()?.focus()));
    } else if (press in card.keys) {
      this.handled(event, card.keys[press]);
    } else if (press === "enter" && event.target === card.article) {
      this.handled(event, () => card.open());
    } else if (press === "enter" || (press.length === 1 && !event.shiftKey)) {
      event.stopImmediatePropagation(); // for the button only, not the notebook
    }
  }

  /**
   * @param {KeyboardEvent} event
   * @param {() => void} act
   */
  handled(event, act) {
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!event.repeat || event.key.startsWith("Arrow") || "jk".includes(event.key)) {
      act();
    }
  }

  /** @param {FocusEvent} event */
  onFocus(event) {
    const panel = this.panel();
    /** @type {(node: EventTarget | null) => boolean} */
    const inside = (node) => node instanceof Node && panel !== null && panel.contains(node);
    if (inside(event.target) && !inside(event.relatedTarget)) {
      this.look();
    }
    const { target } = event;
    const place = this.cards.findIndex(
      (card) => target instanceof Node && card.root.contains(target),
    );
    if (place >= 0 && place !== this.current) {
      this.setCurrent(place);
    }
  }

  /** Ask whether another process has changed something. */
  look() {
    if (this.root.isConnected && Date.now() - this.looked > LOOK_PAUSE) {
      this.looked = Date.now();
      this.send("look");
    }
  }
}

class Card {
  /**
   * @param {CardsView} view
   * @param {Hit} hit
   */
  constructor(view, hit) {
    this.view = view;
    this.hit = hit;
    this.pick = make("input", { type: "checkbox", onchange: () => this.select() });
    this.rank = make("span", { class: "kbkit-rank" });
    this.title = make("h4");
    this.score = make("span", { class: "kbkit-score", role: "img" });
    this.about = make("p", { class: "kbkit-about", dir: "auto" });
    this.where = make("div", { class: "kbkit-where" });
    this.snippet = make("p", { class: "kbkit-snippet", dir: "auto" });
    this.context = make("div", { class: "kbkit-context", hidden: true });
    const { stars, group } = makeStars((score) => this.rate(score));
    this.stars = stars;
    this.undo = this.button("Undo", "u", "Undo your last change of this rating", () =>
      this.send("undo"),
    );
    this.around = this.button("Context", "c", "Show the passages before and after", () =>
      this.send("context", { radius: this.hit.context ? 0 : 1 }),
    );
    this.like = this.button("More like this", "m", "Show similar passages", () => this.more());
    this.whole = this.button("Document", "d", "Open the document at this passage", () =>
      this.send("document"),
    );
    this.copy = this.button("Copy citation", "y", "Quotation and link as Markdown", () =>
      this.cite(),
    );
    this.rated = make("bdi", { class: "kbkit-rated" });
    /** @type {Record<string, () => void>} */
    this.keys = {
      u: () => this.undo.style.visibility !== "hidden" && this.undo.click(),
      c: () => this.around.click(),
      m: () => this.like.click(),
      ...(view.opens && { d: () => this.whole.click() }),
      y: () => this.copy.click(),
      x: () => this.pick.click(),
    };
    const header = make("header", {}, this.pick, this.rank, this.title, this.score);
    const actions = make("div", { class: "kbkit-actions" });
    const openButtons = view.opens ? [this.whole] : [];
    actions.append(group, this.undo, this.around, this.like, ...openButtons, this.copy, this.rated);
    this.article = make("article", { class: "kbkit-card", tabindex: -1 });
    this.article.append(header, this.about, this.where, this.snippet, this.context, actions);
    this.root = make("li", {}, this.article);
    this.drawn = this.drawnContext = "";
    this.fill(hit);
  }

  /**
   * @param {string} text
   * @param {string} key
   * @param {string} title
   * @param {() => void} onclick
   */
  button(text, key, title, onclick) {
    return makeButton(text, onclick, { class: "kbkit-act", title, "aria-keyshortcuts": key });
  }

  /** @param {Hit} hit */
  fill(hit) {
    this.hit = hit;
    this.pick.checked = hit.selected;
    const drawing = JSON.stringify(hit);
    if (drawing === this.drawn) {
      return;
    }
    this.drawn = drawing;
    const label = `Result ${hit.rank}: ${hit.title}`;
    this.article.setAttribute("aria-label", label);
    this.pick.setAttribute("aria-label", `Select ${label.toLowerCase()[0]}${label.slice(1)}`);
    this.article.classList.toggle("kbkit-picked", hit.selected);
    this.root.classList.toggle("kbkit-follows", hit.follows);
    setText(this.rank, String(hit.rank));
    this.title.replaceChildren(
      makeLink(hit.link, {}, make("bdi", {}, markSegments(hit.marked_title))),
    );
    this.title.title = hit.title;
    setText(this.about, hit.about);
    this.about.title = hit.about;
    this.about.hidden = hit.about === "";
    this.where.replaceChildren(...facts(hit));
    this.drawScore(hit.score);
    this.snippet.replaceChildren(...markSegments(hit.snippet));
    showStars(this.stars, hit.stars);
    this.undo.style.visibility = hit.undo ? "visible" : "hidden"; // the row keeps its height
    setText(this.rated, hit.rated);
    this.rated.title = hit.rated;
    const context = JSON.stringify(hit.context);
    if (context !== this.drawnContext) {
      this.drawnContext = context; // its blocks keep their scroll positions
      this.drawContext(hit.context);
    }
  }

  /** @param {Hit["score"]} score */
  drawScore({ total, label, shares }) {
    const bar = make("span", { class: "kbkit-bar" });
    for (const { name, percent } of shares) {
      bar.append(make("span", { class: `kbkit-share-${name}`, style: { width: `${percent}%` } }));
    }
    this.score.replaceChildren(bar, make("span", {}, total));
    this.score.setAttribute("aria-label", label);
    this.score.title = label;
  }

  /** @param {Hit["context"]} context */
  drawContext(context) {
    this.snippet.hidden = context !== null;
    this.context.hidden = context === null;
    this.around.setAttribute("aria-expanded", String(context !== null));
    const passages = (context?.passages ?? []).map(({ html, hit, path }) =>
      make(
        "div",
        { class: hit ? "kbkit-part kbkit-hit" : "kbkit-part" },
        path && make("bdi", { class: "kbkit-path" }, path),
        makePassage(html),
      ),
    );
    const hadFocus = this.context.contains(document.activeElement);
    this.context.replaceChildren(...passages);
    if (context?.more) {
      const wider = () => this.send("context", { radius: context.radius + 2 });
      this.context.append(makeButton("Show more", wider, { class: "kbkit-act" }));
    }
    if (hadFocus) {
      this.article.focus({ preventScroll: true });
    }
  }

  /** @param {boolean} can whether the Tab key stops here */
  reachable(can) {
    /** @type {NodeListOf<HTMLElement>} */
    const inner = this.article.querySelectorAll("a, button, input");
    [this.article, ...inner].forEach((stop) => (stop.tabIndex = can ? 0 : -1));
  }

  /** @param {string} event */
  send(event, values = {}) {
    this.view.send(event, { card: this.hit.id, ...values });
  }

  /** @param {number} score */
  rate(score) {
    this.send("rate", { score });
  }

  select() {
    this.send("select", { on: this.pick.checked });
  }

  more() {
    this.view.trail.push(this.hit.id);
    this.send("more");
  }

  open() {
    this.title.querySelector("a")?.click();
  }

  async cite() {
    const copied = await copyText(this.hit.citation);
    const status = copied
      ? `Copied the citation of “${this.hit.title}”`
      : "The browser did not allow copying";
    this.view.showStatus(status);
    this.article.focus({ preventScroll: true });
  }
}

/** @param {Hit} hit */
function facts({ badges, path, place, age }) {
  return [
    ...badges.map(({ text, kind }) =>
      make("span", { class: `kbkit-badge kbkit-${kind}`, title: text }, text),
    ),
    ...(path ? [make("bdi", { class: "kbkit-path", title: path }, path)] : []),
    make("bdi", { class: "kbkit-place", title: place }, place),
    make("span", { class: "kbkit-fetched", title: age.exact }, age.text),
  ];
}

export const widget = widgetOf(CardsView);
