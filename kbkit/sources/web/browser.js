// Functions that kbkit calls in a rendered page.
({
  // text that changes with the page
  state: () => {
    const body = document.body;
    const text = body ? body.textContent.length : 0;
    return [document.readyState, document.getElementsByTagName("*").length, text].join(" ");
  },

  // clicks unfolding controls outside menus and forms; returns their number
  unfold: (most) => {
    const selector = 'button[aria-expanded="false"], [role="button"][aria-expanded="false"]';
    const excluded = "a[href], nav, header, footer, form, [aria-haspopup], [role='navigation']";
    let clicked = 0;
    for (const button of document.querySelectorAll(selector)) {
      if (clicked >= most) break;
      if (button.closest(excluded)) continue;
      button.click();
      clicked += 1;
    }
    return clicked;
  },

  // returns HTML with open shadow trees in place and without scripts, and its lines of text; null if
  // it is longer than the limit
  serialize: (limit) => {
    const of = (owner, name) => {
      const get = Object.getOwnPropertyDescriptor(owner, name).get;
      return (node) => get.call(node);  // a form's fields can hide its properties
    };
    const children = of(Node.prototype, "childNodes");
    const shadow = of(Element.prototype, "shadowRoot");
    const attributes = of(Element.prototype, "attributes");
    const empty = new Set(["area", "base", "br", "col", "hr", "img", "input", "link", "meta",
      "source", "track", "wbr"]);
    const dropped = new Set(["style", "template", "iframe", "object", "embed", "noscript", "canvas"]);
    const escaped = (text) =>
      text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
    const parts = ["<!DOCTYPE html>"];
    let size = 0;
    const put = (text) => { size += text.length; parts.push(text); };
    const lines = new Set();
    const stack = [document.documentElement];
    while (stack.length) {
      if (size > limit) return null;
      const node = stack.pop();
      if (typeof node === "string") { put(node); continue; }
      if (node.nodeType === 3) {
        const line = node.data.trim();
        if (line) lines.add(line.slice(0, 200));
        put(escaped(node.data));
        continue;
      }
      let name = node.localName;
      if (node.nodeType !== 1 || dropped.has(name) || !/^[a-z][\w.:-]*$/i.test(name)) continue;
      if (name === "script") {
        if ((node.getAttribute("type") || "").trim().toLowerCase() === "application/ld+json")
          put(`<script type="application/ld+json">${node.textContent.replace(/<[/]/g, "<\\/")}` +
            "</" + "script>");
        continue;
      }
      // an unfolding button names its part; other buttons are dropped later
      if (name === "button" && node.matches("[aria-expanded]:not([aria-haspopup])")) name = "div";
      const written = [];
      for (const attribute of attributes(node))
        if (/^[^\s"'<>/=]+$/.test(attribute.name))
          written.push(` ${attribute.name}="${escaped(attribute.value.slice(0, 5000))}"`);
      put(`<${name}${written.join("")}>`);
      if (empty.has(name)) continue;
      stack.push(`</${name}>`);
      let inside = children(node);
      const root = shadow(node);
      if (root) inside = children(root);
      else if (name === "slot") {
        const assigned = HTMLSlotElement.prototype.assignedNodes.call(node);
        if (assigned.length) inside = assigned;
      }
      for (let place = inside.length - 1; place >= 0; place -= 1) stack.push(inside[place]);
    }
    return [parts.join(""), [...lines].slice(0, 50000)];
  },
})
