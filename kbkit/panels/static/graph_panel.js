// The knowledge graph in a panel: the picture and list of exported sites, and forms to change it.
import { make, makeButton, makeLink } from "../../export/assets/elements.js";
import { GraphView } from "../../export/assets/graph.js";
import { labelled, showForm } from "./forms.js";
import { EditingView } from "./asking.js";
import { widgetOf } from "./dom.js";

/**
 * @typedef {import("./asking.js").Reply} Reply
 * @typedef {import("../../export/assets/nodelist.js").Item} Item
 */

const RELATIONS = ["contains", "depends_on", "requires", "extends", "replaces", "handles", "configures", "alias_of", "related_to"]; // prettier-ignore

class GraphPanelView extends EditingView {
  /** @param {import("./dom.js").Widget} widget */
  constructor(widget) {
    super(widget);
    this.version = -1;
    this.waits = false; // whether outside changes are drawn later
    /** @type {Item | null} */
    this.reselect = null;
    this.tools = make(
      "div",
      { class: "kbkit-tools" },
      makeButton("New entity", () => this.create()),
      makeButton("Merge suggestions", () => this.suggest()),
      this.undo,
    );
    this.note = make("p", { class: "kbkit-tree-note", role: "status" });
    const graph = make("div", { "data-lm-suppress-shortcuts": "true" });
    this.el.replaceChildren(graph);
    this.graph = new GraphView(graph, {
      details: async (id) => (await this.ask("details", { id })).answer ?? null,
      around: async (id) => (await this.ask("around", { id })).answer ?? null,
      find: async (text) => (await this.ask("find", { text })).answer ?? [],
      link: (thing) => this.link(thing),
      onDetails: (details, place) => this.addForms(details, place),
    });
    this.graph.root.prepend(this.tools, this.place, this.problemLine, this.note);
    this.ended.signal.addEventListener("abort", () => this.graph.close());
    this.drawOn("state", () => this.draw(this.model.get("state")));
  }

  async look() {
    this.drawWaiting();
    await super.look();
  }

  /** @param {any} message */
  receive(message) {
    if (message.select) {
      this.graph.go(message.select);
    } else {
      super.receive(message);
    }
  }

  /** @param {any} state */
  draw(state) {
    this.state = state;
    if (this.graph.added.querySelector("form")) {
      this.waits = true; // an open form edits the earlier state
      this.note.textContent = "The graph has changed; it is redrawn when this form is closed.";
      this.drawUndo(state.undo);
      return;
    }
    this.waits = false;
    this.note.textContent = "";
    if (state.version !== this.version) {
      this.version = state.version;
      if (this.reselect) {
        this.graph.selected = this.reselect;
        this.reselect = null;
      }
      this.graph.show(state.picture, state.notice);
    }
    this.graph.showGaps(state.gaps);
    this.drawUndo(state.undo);
  }

  /**
   * Change the graph, and select what was changed.
   *
   * @param {string} what
   * @param {Record<string, any>} [values]
   * @returns {Promise<Reply>}
   */
  async change(what, values = {}) {
    const { version } = this;
    const reply = await super.change(what, values);
    if (reply.answer) {
      this.drawUndo(reply.answer.undo ?? "");
      const { item } = reply.answer;
      this.reselect = null;
      if (item && this.version === version) {
        this.reselect = item; // it is redrawn soon
      } else if (item) {
        this.graph.go(item);
      }
    }
    return reply;
  }

  /** @param {any} thing  a document or a passage */
  link(thing) {
    const open = makeButton(make("bdi", {}, thing.name), () => this.send("open", thing), {
      class: "kbkit-link",
    });
    return thing.link ? make("span", {}, open, " ", makeLink(thing.link, {}, "source")) : open;
  }

  // Forms

  /** Draw what a form has kept back. */
  drawWaiting() {
    if (this.waits) {
      this.draw(this.state);
    }
  }

  /**
   * @param {any} details
   * @param {HTMLElement} place
   */
  addForms(details, place) {
    if (place.querySelector("form") && details && place.dataset.id === details.item.id) {
      return; // a form is open there
    }
    place.replaceChildren();
    place.dataset.id = details?.item.id ?? "";
    if (!details) {
      return;
    }
    const { id } = details.item;
    const forms = make("div");
    const entity = details.fields !== null;
    place.append(
      make(
        "div",
        { class: "kbkit-tools" },
        entity && makeButton("Edit", () => this.edit(id, details.fields, forms)),
        makeButton("Relate", () => this.relate(id, forms)),
        details.neighbors.length > 0 &&
          makeButton("Relations", () => this.unrelate(details, forms)),
        entity && makeButton("Delete", () => this.change("delete", { id })),
      ),
      forms,
    );
  }

  /**
   * @param {Record<string, any>} values
   */
  entityFields(values) {
    return [
      labelled("Name", "name", values.name),
      labelled("Type", "type", values.type, undefined, this.state.types),
      labelled("Description", "description", values.description, make("textarea", { rows: 3 })),
      labelled("Aliases, one per line", "aliases", values.aliases.join("\n"), make("textarea", { rows: 2 })), // prettier-ignore
    ];
  }

  /** @param {Record<string, string>} values */
  static entity(values) {
    const aliases = values.aliases.split("\n").map((each) => each.trim()).filter(Boolean); // prettier-ignore
    return { ...values, aliases };
  }

  /**
   * @param {string} id
   * @param {Record<string, any>} fields
   * @param {HTMLElement} place
   */
  edit(id, fields, place) {
    /** @type {import("./forms.js").Form["submit"]} */
    const submit = (values, over) =>
      this.change("update", { ...GraphPanelView.entity(values), id, over });
    showForm(place, "Edit", "Save", this.entityFields(fields), submit, () => this.drawWaiting());
  }

  create() {
    const values = { name: "", type: "name", description: "", aliases: [] };
    showForm(this.place, "New entity", "Create", this.entityFields(values), (typed) =>
      this.change("create", GraphPanelView.entity(typed)),
    );
  }

  /**
   * @param {string} id
   * @param {HTMLElement} place
   */
  relate(id, place) {
    const direction = make("select", {}, make("option", { value: "to" }, "outgoing"), make("option", { value: "from" }, "incoming")); // prettier-ignore
    const names = this.graph.data.nodes.slice(0, 300).map(({ name }) => name);
    const relations = [...new Set([...RELATIONS, ...this.graph.data.edges.map(({ name }) => name)])]; // prettier-ignore
    const fields = [
      labelled("Relation", "relation", "", undefined, relations),
      labelled("Entity", "target", "", undefined, names),
      labelled("Direction", "way", "to", direction),
      labelled("Weight, above 0 and at most 1", "weight", "1"),
      labelled("Note", "note", ""),
    ];
    /** @type {import("./forms.js").Form["submit"]} */
    const submit = (values) =>
      this.change("relate", { ...values, id, forward: values.way === "to" });
    showForm(place, "Relate", "Relate", fields, submit, () => this.drawWaiting());
  }

  /**
   * @param {any} details
   * @param {HTMLElement} place
   */
  unrelate(details, place) {
    const rows = details.neighbors.map((/** @type {any} */ each) => {
      const name = `${each.forward ? "" : "← "}${each.relation.replaceAll("_", " ")}${each.forward ? " →" : ""} ${each.name}`; // prettier-ignore
      const remove = makeButton("Delete", () => this.change("unrelate", { relation: each.number }), { "aria-label": `Delete: ${name}` }); // prettier-ignore
      return make("li", {}, make("bdi", {}, name), each.note && make("small", {}, ` ${each.note}`), " ", remove); // prettier-ignore
    });
    const close = makeButton("Close", () => place.replaceChildren());
    place.replaceChildren(make("div", { class: "kbkit-dialog" }, make("ul", {}, rows), close));
    place.querySelector("button")?.focus();
  }

  // Merging

  async suggest() {
    const { answer, problem } = await this.ask("suggestions", {});
    const close = makeButton("Close", () => this.place.replaceChildren());
    const none = make("p", {}, problem?.text ?? "No duplicates found.");
    const rows = (answer ?? []).map((/** @type {any} */ each) => this.suggestion(each));
    const title = make("h4", { tabindex: -1 }, "Possible duplicates");
    const body = rows.length ? make("ul", {}, rows) : none;
    this.place.replaceChildren(
      make("section", { class: "kbkit-dialog", "aria-label": "Merge suggestions" }, title, body, close), // prettier-ignore
    );
    title.focus();
  }

  /** @param {any} each */
  suggestion({ keep, merge, reason, evidence, score }) {
    const pair = { keep: keep.id, merge: merge.id };
    const decide = (/** @type {string} */ what) => async () => {
      const { answer } = await this.change(what, pair);
      if (answer) {
        row.remove();
      }
    };
    const link = (/** @type {Item} */ item) =>
      makeButton(make("bdi", {}, item.name), () => this.graph.go(item), { class: "kbkit-link" });
    const row = make(
      "li",
      {},
      make("p", {}, link(merge), " is ", link(keep), make("small", {}, ` ${reason}, ${score}`)),
      make("p", { class: "kbkit-graph-evidence", dir: "auto" }, evidence),
      makeButton("Merge", decide("merge"), { "aria-label": `Merge ${merge.name} into ${keep.name}` }), // prettier-ignore
      " ",
      makeButton("Not the same", decide("refuse"), { "aria-label": `${merge.name} and ${keep.name} are not the same` }), // prettier-ignore
    );
    return row;
  }
}

export const widget = widgetOf(GraphPanelView);
