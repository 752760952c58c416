// The documents of a knowledge base as a tree.
import { View, widgetOf } from "./dom.js";
import { Tree } from "./tree.js";

class TreeView extends View {
  /** @param {import("./dom.js").Widget} widget */
  constructor(widget) {
    super(widget);
    const tree = new Tree(this.el, this.ended.signal, {
      children: (folder) => this.send("children", { folder }),
      select: (document) => this.send("select", { document }),
      look: () => this.send("look"),
    });
    this.on("msg:custom", (message) => this.whenReleased(() => tree.receive(message)));
    this.drawOn("state", () => tree.draw(this.model.get("state")));
  }
}

export const widget = widgetOf(TreeView);
