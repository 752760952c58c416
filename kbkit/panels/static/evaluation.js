// Two ways to search, query by query: figures, wins and losses, and results.
import { make, makeButton, makeLink, makeSvg } from "../../export/assets/elements.js";
import { View, claimKey, focusIn, widgetOf } from "./dom.js";
import { bars, signed, spread } from "./plots.js";

/**
 * @typedef {[string, number, number]} Query  the query, nDCG@10 of A and of B
 * @typedef {{name: string, a: number[], b: number[], difference: number[], p: number}} Measure
 * @typedef {object} Row  a passage that one side found
 * @property {string} title
 * @property {string} path
 * @property {string} link
 * @property {string} place
 * @property {string} snippet
 * @property {number | null} gain  its grade; null if not judged
 * @property {number | null} other  its rank on the other side
 * @typedef {"A" | "B"} Side
 * @typedef {object} State
 * @property {number} serial  changes with each measurement; 0 before the first
 * @property {number | null} progress  measured share, during a measurement
 * @property {string[]} notes
 * @property {Measure[]} measures
 * @property {Query[]} queries  the greatest gain of B first
 * @property {number[]} bins
 * @property {number} mean
 */

/** @type {Side[]} */
const SIDES = ["A", "B"];
/** @type {Record<string, number>} */
const STEPS = {
  ArrowRight: 1,
  ArrowUp: 1,
  ArrowLeft: -1,
  ArrowDown: -1,
  PageUp: 10,
  PageDown: -10,
};

class EvaluationView extends View {
  /**
   * @param {import("./dom.js").Model} model
   * @param {HTMLElement} el
   */
  constructor(model, el) {
    super(model, el);
    this.serial = 0;
    this.at = 0;
    this.opened = -1;
    this.cursor = makeSvg("rect", { class: "kbkit-eval-cursor", y: -1.1, width: 1, height: 2.2 });
    this.progress = make("progress", { "aria-label": "Measured", max: 1, value: 0 });
    this.notes = make("div", { class: "kbkit-eval-notes" });
    this.table = make("div", { class: "kbkit-eval-table", tabindex: 0, role: "region" });
    this.table.setAttribute("aria-label", "Measures");
    this.counts = make("p", { class: "kbkit-eval-title" });
    this.plot = make("div", { class: "kbkit-eval-plot", role: "slider", tabindex: 0 });
    this.plot.setAttribute("aria-label", "Queries, the greatest gain of B first");
    this.readout = make("div", { class: "kbkit-eval-readout" });
    this.spread = make("figure", { class: "kbkit-eval-spread" });
    this.lists = make("section", { class: "kbkit-eval-lists", tabindex: -1, hidden: true });
    this.lists.setAttribute("aria-label", "Results of both");
    this.results = make(
      "div",
      { hidden: true },
      this.notes,
      this.table,
      this.counts,
      make("div", { class: "kbkit-eval-plots" }, this.plot, this.spread),
      this.readout,
      this.lists,
    );
    this.root = make("div", { class: "kbkit-eval-sheet" }, this.progress, this.results);
    this.root.dataset.lmSuppressShortcuts = "true";
    el.replaceChildren(this.root);
    this.onKey((event) => this.onKeydown(event));
    this.plot.addEventListener("pointermove", (event) => this.show(this.under(event)));
    this.plot.addEventListener("click", (event) => this.openAt(this.under(event)));
    this.drawOn("state", () => this.drawState());
    this.drawOn("detail", () => this.drawLists());
  }

  /**
   * The place of the query under the pointer.
   *
   * @param {MouseEvent} event
   */
  under(event) {
    const { left, width } = (this.plot.firstElementChild ?? this.plot).getBoundingClientRect();
    const place = Math.floor(((event.clientX - left) / width) * this.queries.length);
    return Math.max(0, Math.min(this.queries.length - 1, place));
  }

  /** @param {KeyboardEvent} event */
  onKeydown(event) {
    const last = this.queries.length - 1;
    if (!claimKey(event, this.root) || event.composedPath()[0] !== this.plot || last < 0) {
      return;
    }
    if (event.key in STEPS) {
      this.show(Math.max(0, Math.min(last, this.at + STEPS[event.key])));
    } else if (event.key === "Home" || event.key === "End") {
      this.show(event.key === "Home" ? 0 : last);
    } else if (event.key === "Enter" || event.key === " ") {
      this.openAt(this.at);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** @returns {Query[]} */
  get queries() {
    return this.model.get("state").queries ?? [];
  }

  drawState() {
    /** @type {State} */
    const state = this.model.get("state");
    const running = typeof state.progress === "number";
    this.progress.style.visibility = running ? "visible" : "hidden";
    this.progress.value = state.progress ?? 0;
    if (!state.serial || state.serial === this.serial) {
      return;
    }
    this.serial = state.serial;
    this.opened = -1;
    this.lists.hidden = true;
    this.results.hidden = false;
    this.notes.replaceChildren(...state.notes.map((note) => make("p", {}, note)));
    this.table.replaceChildren(measureTable(state.measures));
    const [better, worse] = [1, -1].map(
      (sign) => state.queries.filter(([, a, b]) => Math.sign(b - a) === sign).length,
    );
    const same = state.queries.length - better - worse;
    this.counts.textContent = `B is better on ${better}, worse on ${worse}, and the same on ${same}`;
    this.plot.replaceChildren(bars(state.queries, this.cursor));
    this.plot.setAttribute("aria-valuemin", "1");
    this.plot.setAttribute("aria-valuemax", String(state.queries.length));
    this.spread.replaceChildren(...spread(state.bins, state.mean));
    this.show(0);
  }

  /**
   * Point at a query.
   *
   * @param {number} place
   */
  show(place) {
    if (!this.queries.length) {
      return;
    }
    this.at = place;
    this.cursor.setAttribute("x", String(place));
    const [query, a, b] = this.queries[place];
    this.plot.setAttribute("aria-valuenow", String(place + 1));
    this.plot.setAttribute(
      "aria-valuetext",
      `${query}: A ${a.toFixed(2)}, B ${b.toFixed(2)}, difference ${signed(b - a)}`,
    );
    this.readout.replaceChildren(
      make("div", { class: "kbkit-eval-query" }, make("bdi", {}, query)),
      make("div", {}, `nDCG@10: A ${a.toFixed(2)}, B ${b.toFixed(2)}, difference ${signed(b - a)}`),
    );
  }

  /**
   * Open the results of both sides for a query.
   *
   * @param {number} place
   */
  openAt(place) {
    this.show(place);
    this.opened = place;
    this.send("look", { place });
    this.drawLists();
  }

  drawLists() {
    if (this.opened < 0) {
      return;
    }
    const detail = this.model.get("detail");
    /** @type {Record<Side, Row[]> | null} */
    const found = detail.serial === this.serial && detail.place === this.opened ? detail : null;
    const close = makeButton("Close", () => this.closeLists());
    this.lists.hidden = false;
    this.lists.replaceChildren(
      make(
        "div",
        { class: "kbkit-eval-head kbkit-buttons" },
        make("h4", {}, make("bdi", {}, this.queries[this.opened][0])),
        close,
      ),
      make(
        "div",
        { class: "kbkit-eval-pair" },
        SIDES.map((side) =>
          make(
            "section",
            { "aria-label": `Results of ${side}` },
            make("h5", {}, side),
            found
              ? make(
                  "ol",
                  {},
                  found[side].map((row, i) => resultRow(row, i + 1, side)),
                )
              : make("p", {}, "Searching…"),
          ),
        ),
      ),
    );
    if (this.root.contains(focusIn(this.root)) && !found) {
      this.lists.focus({ preventScroll: true });
    }
  }

  closeLists() {
    this.opened = -1;
    this.lists.hidden = true;
    this.plot.focus();
  }
}

/** @param {Measure[]} measures */
function measureTable(measures) {
  /** @typedef {(value: number, digits: number) => string} Write */
  /** @type {Write} */
  const plain = (value, digits) => value.toFixed(digits);
  /** @type {(values: number[], write: Write) => HTMLElement} */
  const cell = ([mean, low, high], write) => {
    const ends = `${write(low, 3)} to ${write(high, 3)}`;
    return make("td", {}, write(mean, 3), make("span", { class: "kbkit-eval-ends" }, ends));
  };
  const head = ["measure", "A", "B", "B − A", "p"].map((name) =>
    make("th", { scope: "col" }, name),
  );
  return make(
    "table",
    {},
    make("caption", {}, "Means, with their 95 % confidence intervals"),
    make("thead", {}, make("tr", {}, head)),
    make(
      "tbody",
      {},
      measures.map((one) =>
        make(
          "tr",
          { class: one.p < 0.05 ? "kbkit-eval-sure" : "" },
          make("th", { scope: "row" }, one.name),
          cell(one.a, plain),
          cell(one.b, plain),
          cell(one.difference, signed),
          make("td", {}, one.p < 0.001 ? "< 0.001" : one.p.toFixed(3)),
        ),
      ),
    ),
  );
}

/**
 * @param {Row} row
 * @param {number} rank
 * @param {Side} side
 */
function resultRow(row, rank, side) {
  const worth =
    row.gain === null
      ? ["not judged", ""]
      : row.gain > 0
        ? [`relevant, ${row.gain}`, "kbkit-eval-relevant"]
        : ["not relevant", ""];
  const elsewhere = side === "A" ? "B" : "A";
  const up = row.other !== null && row.other > rank;
  const moved =
    row.other === null
      ? `not in ${elsewhere}'s top 10`
      : row.other === rank
        ? "same place"
        : `${up ? "▲" : "▼"} ${row.other} in ${elsewhere}`;
  return make(
    "li",
    { class: row.other === rank ? "" : "kbkit-eval-moved" },
    make("div", {}, makeLink(row.link, {}, make("bdi", {}, row.title))),
    make(
      "div",
      { class: "kbkit-eval-facts" },
      make("span", { class: `kbkit-badge ${worth[1]}` }, worth[0]),
      make("span", {}, moved),
      make("bdi", {}, row.path || row.place),
    ),
    make("div", { class: "kbkit-eval-snippet", dir: "auto" }, row.snippet),
  );
}

export default widgetOf(EvaluationView);
