// Two ways to search, query by query: figures, wins and losses, and what each found.
import { make, makeLink, makeSvg, sent } from "./dom.js";
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
 * @property {number | null} gain  what it is worth; null where nobody said
 * @property {number | null} other  its rank on the other side
 */

/** Milliseconds that a pointer rests on a query before its results are asked for. */
const REST = 80;

export default {
  render({ model, el }) {
    const sheet = new Sheet(model, el);
    return () => sheet.over.abort();
  },
};

class Sheet {
  constructor(model, el) {
    this.model = model;
    this.serial = 0;
    this.at = 0;
    this.open = false;
    /** @type {Map<number, {A: Row[], B: Row[]}>} */
    this.details = new Map();
    this.build(el);
    this.listen();
    this.updated();
    this.detailCame();
  }

  build(el) {
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
    this.lists.setAttribute("aria-label", "What both found");
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
  }

  listen() {
    this.over = new AbortController();
    const { signal } = this.over;
    const changes = {
      "change:state": () => this.updated(),
      "change:detail": () => this.detailCame(),
    };
    for (const [name, action] of Object.entries(changes)) {
      this.model.on(name, action);
      signal.addEventListener("abort", () => this.model.off(name, action));
    }
    signal.addEventListener("abort", () => clearTimeout(this.timer));
    this.plot.addEventListener("pointermove", (event) => this.show(this.under(event)), { signal });
    this.plot.addEventListener("click", (event) => this.openAt(this.under(event)), { signal });
    // before the notebook's own shortcuts, which listen on the document
    const first = { capture: true, signal };
    window.addEventListener("keydown", (event) => this.pressed(event), first);
  }

  /** The place of the query under the pointer. */
  under(event) {
    const box = this.plot.firstChild.getBoundingClientRect();
    const place = Math.floor(((event.clientX - box.left) / box.width) * this.queries.length);
    return Math.max(0, Math.min(this.queries.length - 1, place));
  }

  pressed(event) {
    const path = event.composedPath();
    if (!path.includes(this.root) || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (event.key !== "Escape" && event.key !== "Tab") {
      event.stopPropagation();
    }
    const last = this.queries.length - 1;
    const by = {
      ArrowRight: 1,
      ArrowUp: 1,
      ArrowLeft: -1,
      ArrowDown: -1,
      PageUp: 10,
      PageDown: -10,
    };
    if (path[0] !== this.plot || last < 0) {
      return;
    }
    if (event.key in by) {
      this.show(Math.max(0, Math.min(last, this.at + by[event.key])));
    } else if (event.key === "Home" || event.key === "End") {
      this.show(event.key === "Home" ? 0 : last);
    } else if (event.key === "Enter" || event.key === " ") {
      this.openAt(this.at);
    } else {
      return;
    }
    event.preventDefault();
  }

  get queries() {
    return this.model.get("state").queries ?? [];
  }

  updated() {
    const state = this.model.get("state");
    const running = typeof state.progress === "number";
    this.progress.style.visibility = running ? "visible" : "hidden";
    this.progress.value = running ? state.progress : 0;
    if (!state.serial || state.serial === this.serial) {
      return;
    }
    this.serial = state.serial;
    this.details.clear();
    this.open = false;
    this.lists.hidden = true;
    this.results.hidden = false;
    this.notes.replaceChildren(...state.notes.map((note) => make("p", {}, note)));
    this.table.replaceChildren(measureTable(state.measures));
    const [better, worse] = [1, -1].map(
      (sign) => state.queries.filter(([, a, b]) => Math.sign(b - a) === sign).length,
    );
    const same = state.queries.length - better - worse;
    this.counts.textContent = `B is better on ${better}, worse on ${worse}, and the same on ${same}`;
    this.cursor = makeSvg("rect", { class: "kbkit-eval-cursor", y: -1.1, width: 1, height: 2.2 });
    this.plot.replaceChildren(bars(state.queries, this.cursor));
    this.plot.setAttribute("aria-valuemin", "1");
    this.plot.setAttribute("aria-valuemax", String(state.queries.length));
    this.spread.replaceChildren(...spread(state.bins, state.mean));
    this.show(0);
  }

  detailCame() {
    const { serial, place, A, B } = this.model.get("detail");
    if (place === undefined || serial !== this.serial) {
      return;
    }
    this.details.set(place, { A, B });
    if (place === this.at) {
      this.drawReadout();
    }
    if (place === this.opened && this.open) {
      this.drawLists();
    }
  }

  /** Point at a query. */
  show(place, ask = true) {
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
    this.drawReadout();
    clearTimeout(this.timer);
    if (ask && !this.details.has(place)) {
      this.timer = setTimeout(() => this.look(place), REST);
    }
  }

  look(place) {
    sent(this.model, { event: "look", place });
  }

  /** Open what both found for a query. */
  openAt(place) {
    this.show(place, false);
    this.opened = place;
    this.open = true;
    if (!this.details.has(place)) {
      this.look(place);
    }
    this.drawLists();
  }

  drawReadout() {
    const [query, a, b] = this.queries[this.at];
    const found = this.details.get(this.at);
    const first = (side) => [
      make("b", {}, `${side} first: `),
      make("bdi", {}, found ? (found[side][0]?.title ?? "nothing") : "…"),
    ];
    this.readout.replaceChildren(
      make("div", { class: "kbkit-eval-query" }, make("bdi", {}, query)),
      make("div", {}, `nDCG@10: A ${a.toFixed(2)}, B ${b.toFixed(2)}, difference ${signed(b - a)}`),
      make("div", {}, first("A"), " · ", first("B")),
    );
  }

  drawLists() {
    const found = this.details.get(this.opened);
    const close = make("button", { type: "button", onclick: () => this.closeLists() }, "Close");
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
        ["A", "B"].map((side) =>
          make(
            "section",
            { "aria-label": `What ${side} found` },
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
    if (this.root.contains(this.root.getRootNode().activeElement) && !found) {
      this.lists.focus({ preventScroll: true });
    }
  }

  closeLists() {
    this.open = false;
    this.lists.hidden = true;
    this.plot.focus();
  }
}

/** @param {Measure[]} measures */
function measureTable(measures) {
  const ends = ([, low, high], digits, write) => `${write(low, digits)} to ${write(high, digits)}`;
  const plain = (value, digits) => value.toFixed(digits);
  const cell = (values, write) =>
    make(
      "td",
      {},
      write(values[0], 3),
      make("span", { class: "kbkit-eval-ends" }, ends(values, 3, write)),
    );
  const head = ["measure", "A", "B", "B less A", "p"].map((name) =>
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

/** @param {Row} row */
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
      ? `not in ${elsewhere}'s ten`
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
