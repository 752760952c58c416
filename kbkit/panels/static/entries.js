// The entries of a workspace: the table, the entry below it, and its form.
import { focusIn, make, makeButton, placeAfter } from "../../export/assets/elements.js";
import { EditingView } from "./asking.js";
import { widgetOf } from "./dom.js";
import { EntryDetails } from "./entry_details.js";
import { labelled, showForm } from "./forms.js";
import { fillHtml } from "./html.js";
import { makeStars, showStars } from "./stars.js";

const STATUSES = ["active", "draft", "deprecated"];

class EntriesView extends EditingView {
  /** @param {import("./dom.js").Widget} widget */
  constructor(widget) {
    super(widget);
    this.slug = "";
    const createButton = makeButton("New entry…", () => this.showForm(null));
    const tools = make("div", { class: "kbkit-tools" }, createButton, this.undo);
    this.scroll = make("div", {
      class: "kbkit-entry-table",
      role: "region",
      "aria-label": "Table of entries",
      onfocusin: () => this.look(),
      onclick: (/** @type {MouseEvent} */ event) => this.onClick(event),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKeydown(event),
    });
    this.more = makeButton("More", () => this.ask("more", {}));
    this.details = new EntryDetails({
      ask: (what, values) => this.change(what, values),
      edit: (fields) => this.showForm(fields),
      close: () => this.closeEntry(),
    });
    const root = make(
      "div",
      { class: "kbkit-cards", "data-lm-suppress-shortcuts": "true" },
      tools,
      this.problemLine,
      this.place,
      this.scroll,
      this.more,
      this.details.element,
    );
    this.el.replaceChildren(root);
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
    const { html, left } = this.model.get("table");
    const focused = this.focusedSlug();
    fillHtml(this.scroll, html);
    for (const row of this.rows) {
      const { slug, title, stars: average } = row.dataset;
      const { stars, group } = makeStars((score) => this.change("rate", { slug, score }));
      showStars(stars, Number(average));
      group.setAttribute("aria-label", `Rate ${title}`);
      // keys 1 to 5 rate the row
      stars.forEach((star) => star.setAttribute("tabindex", "-1"));
      row.cells[1].prepend(group);
    }
    this.more.hidden = left === 0;
    this.more.textContent = `More: ${left.toLocaleString("en")} left`;
    this.markRow();
    if (focused) {
      this.focusRow(focused);
    }
  }

  get rows() {
    return [...this.scroll.querySelectorAll("tbody tr")].filter((row) => row instanceof HTMLTableRowElement); // prettier-ignore
  }

  /** @param {MouseEvent} event */
  onClick({ target }) {
    const button = target instanceof Element ? target.closest("button") : null;
    if (button?.dataset.sort) {
      this.ask("sort", { by: button.dataset.sort });
    } else if (button?.matches(".kbkit-link")) {
      this.send("select", { slug: button.closest("tr")?.dataset.slug });
    }
  }

  markRow() {
    for (const row of this.rows) {
      const open = row.dataset.slug === this.slug;
      row.classList.toggle("kbkit-picked", open);
      row.querySelector(".kbkit-link")?.setAttribute("aria-current", String(open));
    }
  }

  focusedSlug() {
    return this.rows.find((row) => row.contains(focusIn(row)))?.dataset.slug ?? "";
  }

  /** @param {string} slug */
  focusRow(slug) {
    const row = this.rows.find((candidate) => candidate.dataset.slug === slug);
    /** @type {HTMLElement | null | undefined} */ (row?.querySelector(".kbkit-link"))?.focus();
  }

  /** @param {KeyboardEvent} event */
  onKeydown(event) {
    const { rows } = this;
    const i = rows.findIndex((row) => row.dataset.slug === this.focusedSlug());
    if (i < 0 || event.ctrlKey || event.altKey || event.metaKey) {
      return;
    }
    const place = placeAfter(event.key, i, rows.length);
    if (place !== null) {
      this.focusRow(rows[place].dataset.slug ?? "");
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
    const initial = (name) => fields?.[name] ?? "";
    const candidates = [
      labelled("Title", "title", initial("title")),
      fields === null && labelled("Folder name (default: from the title)", "slug", ""),
      labelled("Description, which search uses", "description", initial("description"), text(2)),
      labelled("Tags, separated by commas", "tags", initial("tags")),
      labelled("Category", "category", initial("category")),
      labelled("Status", "status", initial("status") || "active", choice),
      labelled("Prompt, for agents", "prompt", initial("prompt"), text(8)),
      labelled("Readme, for people", "readme", initial("readme"), text(4)),
    ];
    const controls = /** @type {import("./forms.js").Field[]} */ (candidates.filter(Boolean));
    const title = fields === null ? "New entry" : `Edit ${fields.title}`;
    /** @type {import("./forms.js").Form["submit"]} */
    const submit = (values, over) =>
      fields === null
        ? this.change("create", values)
        : this.change("update", { ...values, slug, over, version: fields.version });
    const label = fields === null ? "Create" : "Save";
    showForm(this.place, title, label, controls, submit, () => this.focusRow(this.slug));
  }
}

export const widget = widgetOf(EntriesView);
