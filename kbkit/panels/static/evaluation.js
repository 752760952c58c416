// Two ways to search, query by query: Python draws figures, wins and losses, and results.
import { focusIn, make, makeButton } from "../../export/assets/elements.js";
import { View, claimKey, widgetOf } from "./dom.js";
import { fillHtml } from "./html.js";

/**
 * @typedef {[string, number, number]} Query  the query, nDCG@10 of A and of B
 * @typedef {object} Results  empty before the first comparison
 * @property {number} serial  changes with each comparison
 * @property {string} html
 * @property {Query[]} queries  the greatest gain of B first
 */

/** @type {Record<string, number>} */
const STEPS = {
  ArrowRight: 1,
  ArrowUp: 1,
  ArrowLeft: -1,
  ArrowDown: -1,
  PageUp: 10,
  PageDown: -10,
  Home: -Infinity,
  End: Infinity,
};

class EvaluationView extends View {
  /** @param {import("./dom.js").Widget} widget */
  constructor(widget) {
    super(widget);
    this.at = 0;
    this.opened = -1;
    this.progress = make("progress", { "aria-label": "Measured", max: 1, value: 0 });
    this.results = make("div");
    this.readout = make("div", { class: "kbkit-eval-readout" });
    this.lists = make("section", { class: "kbkit-eval-lists", "aria-label": "Results of both" });
    this.lists.tabIndex = -1;
    this.root = make("div", { class: "kbkit-eval-sheet", "data-lm-suppress-shortcuts": "true" });
    this.root.append(this.progress, this.results, this.readout, this.lists);
    this.el.replaceChildren(this.root);
    this.onKey((event) => this.onKeydown(event));
    this.results.addEventListener("pointermove", (event) => this.show(this.under(event)));
    this.results.addEventListener("click", (event) => this.openAt(this.under(event)));
    this.drawOn("state", () => this.drawProgress());
    this.drawOn("results", () => this.drawResults());
    this.drawOn("detail", () => this.drawLists());
  }

  /** @returns {Query[]} */
  get queries() {
    return this.model.get("results").queries ?? [];
  }

  /** The plot of all queries. */
  get plot() {
    return /** @type {HTMLElement | null} */ (this.results.querySelector("[role=slider]"));
  }

  /**
   * The place of the query under the pointer; -1 beside the plot.
   *
   * @param {MouseEvent} event
   */
  under(event) {
    const { plot } = this;
    if (!plot?.firstElementChild || !event.composedPath().includes(plot)) {
      return -1;
    }
    const { left, width } = plot.firstElementChild.getBoundingClientRect();
    return this.within(Math.floor(((event.clientX - left) / width) * this.queries.length));
  }

  /** @param {number} place */
  within(place) {
    return Math.max(0, Math.min(this.queries.length - 1, place));
  }

  /** @param {KeyboardEvent} event */
  onKeydown(event) {
    if (!claimKey(event, this.root) || event.composedPath()[0] !== this.plot) {
      return;
    }
    if (event.key in STEPS) {
      this.show(this.within(this.at + STEPS[event.key]));
    } else if (event.key === "Enter" || event.key === " ") {
      this.openAt(this.at);
    } else {
      return;
    }
    event.preventDefault();
  }

  drawProgress() {
    /** @type {number | null} the measured share, during a measurement */
    const progress = this.model.get("state").progress ?? null;
    this.progress.style.visibility = progress === null ? "hidden" : "visible";
    this.progress.value = progress ?? 0;
  }

  drawResults() {
    fillHtml(this.results, this.model.get("results").html ?? "");
    this.opened = -1;
    this.lists.hidden = true;
    this.show(this.queries.length ? 0 : -1);
  }

  /**
   * Point at a query.
   *
   * @param {number} place  -1 for none
   */
  show(place) {
    const { plot } = this;
    if (place < 0 || !plot) {
      return;
    }
    this.at = place;
    const [query, a, b] = this.queries[place];
    const difference = (b > a ? "+" : "") + (b - a).toFixed(2);
    const figures = `A ${a.toFixed(2)}, B ${b.toFixed(2)}, difference ${difference}`;
    plot.querySelector(".kbkit-eval-cursor")?.setAttribute("x", String(place));
    plot.setAttribute("aria-valuenow", String(place + 1));
    plot.setAttribute("aria-valuetext", `${query}: ${figures}`);
    this.readout.replaceChildren(
      make("div", { class: "kbkit-eval-query" }, make("bdi", {}, query)),
      make("div", {}, `nDCG@10: ${figures}`),
    );
  }

  /**
   * Open the results of both sides for a query.
   *
   * @param {number} place  -1 for none
   */
  openAt(place) {
    if (place >= 0) {
      this.show(place);
      this.opened = place;
      this.send("look", { place });
      this.drawLists();
    }
  }

  drawLists() {
    if (this.opened < 0) {
      return;
    }
    const { serial, place, html } = this.model.get("detail");
    const isLoaded = serial === this.model.get("results").serial && place === this.opened;
    const title = make("h4", {}, make("bdi", {}, this.queries[this.opened][0]));
    const close = makeButton("Close", () => this.closeLists());
    const body = make("div");
    fillHtml(body, isLoaded ? html : "<p>Searching…</p>");
    this.lists.hidden = false;
    this.lists.replaceChildren(
      make("div", { class: "kbkit-eval-head kbkit-buttons" }, title, close),
      body,
    );
    if (this.root.contains(focusIn(this.root)) && !isLoaded) {
      this.lists.focus({ preventScroll: true });
    }
  }

  closeLists() {
    this.opened = -1;
    this.lists.hidden = true;
    this.plot?.focus();
  }
}

export const widget = widgetOf(EvaluationView);
