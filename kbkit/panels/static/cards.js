// The results of a search as cards, with keys to move between them, rate, select and open them.
import { copied, drawn, make, makeLink, marked } from "./dom.js";
import { makeRendered } from "./rendered.js";

/**
 * @typedef {import("./dom.js").Segments} Segments
 * @typedef {{html: string, own: boolean, path: string}} Passage  one chunk of a document, sanitised
 * @typedef {object} Hit  what a card shows
 * @property {string} id
 * @property {number} rank
 * @property {string} name  the title as plain text
 * @property {Segments} title
 * @property {string} link  an address of the web, or ""
 * @property {{text: string, kind: string}[]} badges
 * @property {string} path  headings above the passage
 * @property {string} place  where the document comes from
 * @property {{text: string, exact: string}} fresh  when it was fetched
 * @property {{total: string, said: string, shares: {name: string, percent: number}[]}} score
 * @property {Segments} snippet
 * @property {number} stars  the reader's rating for this query, or 0
 * @property {string} rated  what else was said about it
 * @property {boolean} undo
 * @property {boolean} selected
 * @property {string} citation  Markdown
 * @property {{reach: number, passages: Passage[], more: boolean} | null} context
 * @typedef {object} State
 * @property {number} serial  another one for each search
 * @property {string} status
 * @property {string} problem
 * @property {{like: string, back: string} | null} origin  what a passage the results are like
 * @property {number} depth  steps that lead back
 * @property {{title: string, text: string} | null} notice
 * @property {Hit[]} cards
 * @property {number} selected
 */

const MEANINGS = ["not useful", "slightly useful", "useful", "very useful", "the answer"];
const KEYS =
  "↓ ↑ move · 1–5 rate · U undo · C context · M more like this · X select · Y copy · Enter open · / search";
/** Milliseconds between two questions whether somebody else changed something. */
const LOOK_PAUSE = 1000;

export default {
  render({ model, el }) {
    const results = new Results(el);
    const end = drawn({ model }, (state, send) => results.draw(state, send));
    return () => {
      end();
      results.close();
    };
  },
};

class Results {
  constructor(el) {
    /** @type {Card[]} */
    this.cards = [];
    this.current = 0;
    this.serial = -1;
    this.looked = 0;
    /** @type {string[]} ids of the cards that led to other results */
    this.trail = [];
    this.send = () => {};
    this.status = make("div", { class: "kbkit-status", role: "status" });
    this.problem = make("div", { class: "kbkit-status kbkit-problem", role: "alert" });
    this.back = make("button", { type: "button", onclick: () => this.send("back") });
    this.like = make("bdi", { class: "kbkit-like" });
    this.origin = make("div", { class: "kbkit-origin", hidden: true }, this.back, this.like);
    this.notice = make("div", { class: "kbkit-notice" });
    this.list = make("ol", { class: "kbkit-list", "aria-label": "Results" });
    this.scroller = make("div", { class: "kbkit-results" }, this.notice, this.list);
    this.count = make("span");
    this.clear = make("button", { type: "button", onclick: () => this.send("clear") }, "Clear");
    this.chosen = make("span", { class: "kbkit-chosen" }, this.count, this.clear);
    const foot = make("div", { class: "kbkit-foot" }, make("span", {}, KEYS), this.chosen);
    this.root = make("div", { class: "kbkit-cards" });
    this.root.append(this.status, this.problem, this.origin, this.scroller, foot);
    el.replaceChildren(this.root);
    this.ended = new AbortController();
    const { signal } = this.ended;
    // Before the shortcuts of JupyterLab, which listens on the document: there x cuts a cell.
    const early = { capture: true, signal };
    window.addEventListener("keydown", (event) => this.pressed(event), early);
    window.addEventListener("focus", () => this.look(), { signal });
    document.addEventListener("focusin", (event) => this.entered(event), { signal });
  }

  close() {
    this.ended.abort();
  }

  /** @param {State} state */
  draw(state, send) {
    this.send = send;
    const focus = this.focused();
    setText(this.status, state.status);
    setText(this.problem, state.problem);
    this.status.hidden = Boolean(state.problem);
    this.problem.hidden = !state.problem;
    this.origin.hidden = state.origin === null;
    setText(this.back, state.origin ? `← ${state.origin.back}` : "");
    setText(this.like, state.origin ? state.origin.like : "");
    this.notice.hidden = state.notice === null;
    const { title = "", text = "" } = state.notice ?? {};
    this.notice.replaceChildren(make("b", {}, title), make("span", {}, text));
    this.count.textContent = `${state.selected} selected`;
    this.chosen.style.visibility = state.selected ? "visible" : "hidden";
    this.fill(state.cards);
    if (state.serial !== this.serial) {
      this.serial = state.serial;
      this.scroller.scrollTop = 0;
      this.renew(state, focus);
    } else if (focus && !this.focused()) {
      this.go(Math.min(this.current, this.cards.length - 1));
    }
  }

  /** @param {Hit[]} hits */
  fill(hits) {
    while (this.cards.length > hits.length) {
      this.cards.pop().root.remove();
    }
    while (this.cards.length < hits.length) {
      const card = new Card(this);
      this.cards.push(card);
      this.list.append(card.root);
    }
    this.cards.forEach((card, i) => card.fill(hits[i]));
    this.setCurrent(Math.max(0, Math.min(this.current, hits.length - 1)));
  }

  /** New results: they begin with the first, or with the one that a reader comes back to. */
  renew(state, focus) {
    let from = "";
    while (this.trail.length > state.depth) {
      from = this.trail.pop();
    }
    const place = Math.max(
      0,
      this.cards.findIndex((card) => card.hit.id === from),
    );
    this.setCurrent(place);
    if (focus) {
      this.go(place);
    } else if (from) {
      this.cards[place]?.article.scrollIntoView({ block: "nearest" });
    }
  }

  focused() {
    const active = /** @type {Document} */ (this.root.getRootNode()).activeElement;
    return active !== null && this.root.contains(active);
  }

  /** One card is a stop of the Tab key, and so are its own controls. */
  setCurrent(place) {
    this.current = place;
    this.cards.forEach((card, i) => card.reachable(i === place));
  }

  go(place) {
    if (place < 0 || this.cards.length === 0) {
      this.query()?.focus();
      return;
    }
    const card = this.cards[Math.min(place, this.cards.length - 1)];
    this.setCurrent(this.cards.indexOf(card));
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
  pressed(event) {
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
    const moves = { arrowdown: 1, j: 1, arrowup: -1, k: -1 };
    if (press in moves) {
      const place = Math.min(this.current + moves[press], this.cards.length - 1);
      this.handled(event, () => this.go(place));
    } else if (press === "home" || press === "end") {
      this.handled(event, () => this.go(press === "home" ? 0 : this.cards.length - 1));
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
      event.stopImmediatePropagation(); // the button does what it does, the notebook nothing
    }
  }

  handled(event, act) {
    event.preventDefault();
    event.stopImmediatePropagation();
    if (!event.repeat || event.key.startsWith("Arrow") || "jk".includes(event.key)) {
      act();
    }
  }

  /** @param {FocusEvent} event */
  entered(event) {
    const panel = this.panel();
    const inside = (node) => node instanceof Node && panel !== null && panel.contains(node);
    if (inside(event.target) && !inside(event.relatedTarget)) {
      this.look();
    }
    const place = this.cards.findIndex((card) => card.root.contains(event.target));
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
  /** @param {Results} results */
  constructor(results) {
    this.results = results;
    /** @type {Hit | null} */
    this.hit = null;
    this.pick = make("input", { type: "checkbox", onchange: () => this.select() });
    this.rank = make("span", { class: "kbkit-rank" });
    this.title = make("h4");
    this.score = make("span", { class: "kbkit-score", role: "img" });
    this.where = make("div", { class: "kbkit-where" });
    this.snippet = make("p", { class: "kbkit-snippet", dir: "auto" });
    this.context = make("div", { class: "kbkit-context", hidden: true });
    this.stars = MEANINGS.map((meaning, i) => this.star(i + 1, meaning));
    this.undo = this.button("Undo", "u", "Take back the last change of this rating", () =>
      this.tell("undo"),
    );
    this.around = this.button("Context", "c", "Show what stands before and after", () =>
      this.tell("context", { reach: this.hit.context ? 0 : 1 }),
    );
    this.like = this.button("More like this", "m", "Passages of the same meaning", () =>
      this.more(),
    );
    this.copy = this.button("Copy citation", "y", "Quotation and link as Markdown", () =>
      this.cite(),
    );
    this.rated = make("bdi", { class: "kbkit-rated" });
    this.keys = {
      u: () => this.undo.style.visibility !== "hidden" && this.undo.click(),
      c: () => this.around.click(),
      m: () => this.like.click(),
      y: () => this.copy.click(),
      x: () => this.pick.click(),
    };
    const header = make("header", {}, this.pick, this.rank, this.title, this.score);
    const group = make("span", { class: "kbkit-stars", role: "group", "aria-label": "Rate" });
    group.append(...this.stars);
    const actions = make("div", { class: "kbkit-actions" });
    actions.append(group, this.undo, this.around, this.like, this.copy, this.rated);
    this.article = make("article", { class: "kbkit-card", tabindex: -1 });
    this.article.append(header, this.where, this.snippet, this.context, actions);
    this.root = make("li", {}, this.article);
  }

  button(text, key, title, onclick) {
    const attributes = { type: "button", title, "aria-keyshortcuts": key, onclick };
    return make("button", { class: "kbkit-act", ...attributes }, text);
  }

  star(score, meaning) {
    const label = `${score} ${score === 1 ? "star" : "stars"}, ${meaning}`;
    const onclick = () => this.rate(score);
    const attributes = { type: "button", title: label, "aria-label": label, onclick };
    return make("button", { class: "kbkit-star", ...attributes });
  }

  /** @param {Hit} hit */
  fill(hit) {
    const before = this.hit;
    this.hit = hit;
    const said = `Result ${hit.rank}: ${hit.name}`;
    this.article.setAttribute("aria-label", said);
    this.pick.setAttribute("aria-label", `Select ${said.toLowerCase()[0]}${said.slice(1)}`);
    this.pick.checked = hit.selected;
    this.article.classList.toggle("kbkit-picked", hit.selected);
    setText(this.rank, String(hit.rank));
    const changed = (...names) =>
      names.some((name) => JSON.stringify(before?.[name]) !== JSON.stringify(hit[name]));
    if (changed("title", "link")) {
      this.title.replaceChildren(makeLink(hit.link, {}, make("bdi", {}, marked(hit.title))));
      this.title.title = hit.name;
    }
    if (changed("badges", "path", "place", "fresh")) {
      this.where.replaceChildren(...whereabouts(hit));
    }
    if (changed("score")) {
      this.drawScore(hit.score);
    }
    if (changed("snippet")) {
      this.snippet.replaceChildren(...marked(hit.snippet));
    }
    if (changed("context")) {
      this.drawContext(hit.context);
    }
    this.drawRating(hit);
  }

  /** @param {Hit["score"]} score */
  drawScore({ total, said, shares }) {
    const bar = make("span", { class: "kbkit-bar" });
    for (const { name, percent } of shares) {
      bar.append(make("span", { class: `kbkit-${name}`, style: { width: `${percent}%` } }));
    }
    this.score.replaceChildren(bar, make("span", {}, total));
    this.score.setAttribute("aria-label", said);
    this.score.title = said;
  }

  /** @param {Hit} hit */
  drawRating(hit) {
    this.stars.forEach((star, i) => {
      star.setAttribute("aria-pressed", String(i + 1 === hit.stars));
      star.classList.toggle("kbkit-on", i < hit.stars);
    });
    this.undo.style.visibility = hit.undo ? "visible" : "hidden"; // the row keeps its height
    setText(this.rated, hit.rated);
    this.rated.title = hit.rated;
  }

  /** @param {Hit["context"]} context */
  drawContext(context) {
    this.snippet.hidden = context !== null;
    this.context.hidden = context === null;
    this.around.setAttribute("aria-expanded", String(context !== null));
    const passages = (context?.passages ?? []).map(({ html, own, path }) =>
      make(
        "div",
        { class: own ? "kbkit-part kbkit-own" : "kbkit-part" },
        path && make("bdi", { class: "kbkit-path" }, path),
        makeRendered(html),
      ),
    );
    const wider = () => this.tell("context", { reach: this.hit.context.reach + 2 });
    const more =
      context?.more &&
      make("button", { class: "kbkit-act", type: "button", onclick: wider }, "Show more");
    const held = this.context.contains(document.activeElement);
    this.context.replaceChildren(...passages, ...(more ? [more] : []));
    if (held) {
      this.article.focus({ preventScroll: true });
    }
  }

  /** @param {boolean} can whether the Tab key stops here */
  reachable(can) {
    const stops = [this.article, ...this.article.querySelectorAll("a, button, input")];
    stops.forEach((stop) => (stop.tabIndex = can ? 0 : -1));
  }

  tell(event, more = {}) {
    this.results.send(event, { card: this.hit.id, ...more });
  }

  rate(score) {
    this.tell("rate", { score });
  }

  select() {
    this.tell("select", { on: this.pick.checked });
  }

  more() {
    this.results.trail.push(this.hit.id);
    this.tell("more");
  }

  open() {
    this.title.querySelector("a")?.click();
  }

  async cite() {
    const done = await copied(this.hit.citation);
    const said = done ? `Copied the citation of “${this.hit.name}”` : "The browser did not copy it";
    setText(this.results.status, said);
    this.article.focus({ preventScroll: true });
  }
}

/** @param {Hit} hit */
function whereabouts({ badges, path, place, fresh }) {
  return [
    ...badges.map(({ text, kind }) => make("span", { class: `kbkit-badge kbkit-${kind}` }, text)),
    path && make("bdi", { class: "kbkit-path", title: path }, path),
    make("bdi", { class: "kbkit-place", title: place }, place),
    make("span", { class: "kbkit-fetched", title: fresh.exact }, fresh.text),
  ].filter(Boolean);
}

/** Change a text only if it differs, so that screen readers do not read it again. */
function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
    element.title = "title" in element && element.matches(".kbkit-status") ? text : element.title;
  }
}
