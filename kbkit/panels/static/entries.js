// The entries of a workspace: the table, the entry below it, and its form.
import { make, makeButton } from "../../export/assets/elements.js";
import { EditingView } from "./asking.js";
import { widgetOf } from "./dom.js";
import { EntryDetails } from "./entry_details.js";
import { Form, labelled } from "./forms.js";
import { makeStars, showStars } from "./stars.js";

/**
 * @typedef {object} Row
 * @property {string} slug
 * @property {string} title
 * @property {string} description
 * @property {string} status
 * @property {string} category
 * @property {string[]} tags
 * @property {number} average
 * @property {number} count  of votes
 * @property {string} updated
 * @property {string} problem  why it cannot be read, or ""
 * @typedef {{rows: Row[], total: number, sort: string, empty: string}} Table
 */

const STATUSES = ["active", "draft", "deprecated"];
/** Columns to sort by: label, name of the order, and direction. */
const COLUMNS = [
  ["Title", "title", "ascending"],
  ["Rating", "rating", "descending"],
  ["Status", "", ""],
  ["Tags", "", ""],
  ["Changed", "updated", "descending"],
];

class EntriesView extends EditingView {
  /**
   * @param {import("./dom.js").Model} model
   * @param {HTMLElement} el
   */
  constructor(model, el) {
    super(model, el);
    this.slug = "";
    const maker = makeButton("New entry…", () => this.showForm(null));
    const tools = make("div", { class: "kbkit-tools" }, maker, this.undo);
    this.head = make("tr");
    this.body = make("tbody", {
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKeydown(event),
    });
    const table = make("table", { "aria-label": "Entries" }, make("thead", {}, this.head), this.body); // prettier-ignore
    this.scroll = make("div", { class: "kbkit-entry-table", tabindex: 0, role: "region", "aria-label": "Table of entries", onfocus: () => this.send("look") }, table); // prettier-ignore
    this.empty = make("p", { class: "kbkit-tree-note" });
    this.more = makeButton("More", () => this.ask("more", {}));
    this.details = new EntryDetails({
      ask: (what, values) => this.change(what, values),
      edit: (fields) => this.showForm(fields),
      close: () => this.closeEntry(),
    });
    const whole = make(
      "div",
      { class: "kbkit-cards", "data-lm-suppress-shortcuts": "true" },
      tools,
      this.said,
      this.place,
      this.scroll,
      this.empty,
      this.more,
      this.details.element,
    );
    el.replaceChildren(whole);
    this.drawOn("table", () => this.drawTable());
    this.drawOn("state", () => this.draw());
  }

  draw() {
    const { entry, undo, serial } = this.model.get("state");
    this.drawUndo(undo);
    this.slug = entry?.slug ?? "";
    this.details.draw(entry, serial);
    this.markRow();
  }

  // The table

  drawTable() {
    /** @type {Table} */
    const { rows, total, sort, empty } = this.model.get("table");
    const focused = this.focusedSlug();
    this.head.replaceChildren(...COLUMNS.map(([label, by, way]) => this.header(label, by, sort === by ? way : ""))); // prettier-ignore
    this.body.replaceChildren(...rows.map((row) => this.line(row)));
    this.scroll.hidden = rows.length === 0;
    this.empty.hidden = rows.length > 0;
    this.empty.textContent = empty;
    this.more.hidden = rows.length >= total;
    this.more.textContent = `More: ${(total - rows.length).toLocaleString("en")} left`;
    this.markRow();
    if (focused) {
      this.focusRow(focused);
    }
  }

  /**
   * @param {string} label
   * @param {string} by
   * @param {string} way
   */
  header(label, by, way) {
    const arrow = way === "ascending" ? " ▴" : way ? " ▾" : "";
    const mark = make("span", { "aria-hidden": "true" }, arrow);
    const inner = by ? makeButton([label, mark], () => this.ask("sort", { by })) : label;
    return make("th", { scope: "col", "aria-sort": by ? way || "none" : null }, inner);
  }

  /** @param {Row} row */
  line(row) {
    const { stars, group } = makeStars((score) => this.change("rate", { slug: row.slug, score }));
    showStars(/** @type {HTMLButtonElement[]} */ (stars), Math.round(row.average));
    group.setAttribute("aria-label", `Rate ${row.title}`);
    // keys 1 to 5 rate the row
    stars.forEach((star) => star.setAttribute("tabindex", "-1"));
    const votes = row.count ? `${row.average.toLocaleString("en")} (${row.count})` : "no votes";
    const open = makeButton(
      make("bdi", {}, row.title),
      () => this.send("select", { slug: row.slug }),
      { class: "kbkit-link" },
    );
    const about = make("span", { class: "kbkit-entry-about", dir: "auto" }, row.problem || row.description); // prettier-ignore
    about.classList.toggle("kbkit-problem", row.problem !== "");
    const tags = row.tags.map((tag) => make("span", { class: "kbkit-badge" }, make("bdi", {}, tag))); // prettier-ignore
    const status = make("span", { class: `kbkit-badge kbkit-status-${row.status}` }, row.status);
    return make(
      "tr",
      { "data-slug": row.slug },
      make("th", { scope: "row" }, open, about),
      make("td", {}, group, make("span", { class: "kbkit-entry-votes" }, votes)),
      make("td", {}, status, row.category && make("small", {}, make("bdi", {}, row.category))),
      make("td", {}, make("span", { class: "kbkit-entry-tags" }, tags)),
      make("td", {}, row.updated),
    );
  }

  markRow() {
    for (const row of this.body.querySelectorAll("tr")) {
      const open = row.dataset.slug === this.slug;
      row.classList.toggle("kbkit-picked", open);
      row.querySelector(".kbkit-link")?.setAttribute("aria-current", String(open));
    }
  }

  focusedSlug() {
    const root = /** @type {Document} */ (this.body.getRootNode());
    const active = root.activeElement;
    const row = active && this.body.contains(active) && active.closest("tr");
    return (row && row.dataset.slug) || "";
  }

  /** @param {string} slug */
  focusRow(slug) {
    const row = [...this.body.querySelectorAll("tr")].find((each) => each.dataset.slug === slug);
    /** @type {HTMLElement | null | undefined} */ (row?.querySelector(".kbkit-link"))?.focus();
  }

  /** @param {KeyboardEvent} event */
  onKeydown(event) {
    const rows = [...this.body.querySelectorAll("tr")];
    const i = rows.findIndex((row) => row.dataset.slug === this.focusedSlug());
    if (i < 0 || event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    /** @type {Record<string, number>} */
    const moves = { ArrowDown: i + 1, ArrowUp: i - 1, Home: 0, End: rows.length - 1 };
    if (event.key in moves) {
      const to = Math.max(0, Math.min(moves[event.key], rows.length - 1));
      this.focusRow(rows[to].dataset.slug ?? "");
    } else if (/^[1-5]$/.test(event.key)) {
      this.change("rate", { slug: rows[i].dataset.slug, score: Number(event.key) });
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  closeEntry() {
    const { slug } = this;
    this.send("close");
    this.focusRow(slug);
  }

  // The form

  /** @param {Record<string, string> | null} fields  initial values; null for a new entry */
  showForm(fields) {
    const { slug } = this;
    const text = (/** @type {number} */ rows) => make("textarea", { rows });
    const choice = make("select", {}, STATUSES.map((each) => make("option", { value: each }, each))); // prettier-ignore
    /** @type {(name: string) => string} */
    const begin = (name) => fields?.[name] ?? "";
    const all = [
      labelled("Title", "title", begin("title")),
      fields === null && labelled("Folder name (default: from the title)", "slug", ""),
      labelled("Description, which search uses", "description", begin("description"), text(2)),
      labelled("Tags, separated by commas", "tags", begin("tags")),
      labelled("Category", "category", begin("category")),
      labelled("Status", "status", begin("status") || "active", choice),
      labelled("Prompt, for agents", "prompt", begin("prompt"), text(8)),
      labelled("Readme, for people", "readme", begin("readme"), text(4)),
    ];
    const controls = /** @type {import("./forms.js").Field[]} */ (all.filter(Boolean));
    const title = fields === null ? "New entry" : `Edit ${fields.title}`;
    const form = new Form(title, fields === null ? "Create" : "Save", controls, {
      submit: (values, over) =>
        fields === null
          ? this.change("create", values)
          : this.change("update", { ...values, slug, over, version: fields.version }),
      close: () => {
        this.place.replaceChildren();
        this.focusRow(this.slug);
      },
    });
    this.place.replaceChildren(form.element);
    controls[0].control.focus();
  }
}

export default widgetOf(EntriesView);
