"""How a page that a browser shows is looked at: in a world of its own (an *isolated world*).

There, JavaScript has the page's document, and nothing that the page's scripts changed.
"""

from __future__ import annotations

from typing import Any

STATE = """() => {
  const body = document.body;
  const text = body ? body.textContent.length : 0;
  return [document.readyState, document.getElementsByTagName("*").length, text].join(" ");
}"""
"""Changes as long as the page does."""

UNFOLD = """(most) => {
  const chosen = 'button[aria-expanded="false"], [role="button"][aria-expanded="false"]';
  const apart = "a[href], nav, header, footer, form, [aria-haspopup], [role='navigation']";
  let pressed = 0;
  for (const button of document.querySelectorAll(chosen)) {
    if (pressed >= most) break;
    if (button.closest(apart)) continue;
    button.click();
    pressed += 1;
  }
  return pressed;
}"""
"""Presses what unfolds a part of the page, menus and forms apart; gives how many."""

SERIALIZE = """(limit) => {
  const of = (owner, name) => {
    const get = Object.getOwnPropertyDescriptor(owner, name).get;
    return (node) => get.call(node);  // a form's fields can hide its properties
  };
  const children = of(Node.prototype, "childNodes");
  const shadow = of(Element.prototype, "shadowRoot");
  const attributes = of(Element.prototype, "attributes");
  const empty = new Set(["area", "base", "br", "col", "hr", "img", "input", "link", "meta",
    "source", "track", "wbr"]);
  const left = new Set(["style", "template", "iframe", "object", "embed", "noscript", "canvas"]);
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
    if (node.nodeType !== 1 || left.has(name) || !/^[a-z][\\w.:-]*$/i.test(name)) continue;
    if (name === "script") {
      if ((node.getAttribute("type") || "").trim().toLowerCase() === "application/ld+json")
        put(`<script type="application/ld+json">${node.textContent.replace(/<[/]/g, "<\\\\/")}` +
          "</" + "script>");
      continue;
    }
    // what unfolds a part names it, and buttons as such are no content
    if (name === "button" && node.matches("[aria-expanded]:not([aria-haspopup])")) name = "div";
    const said = [];
    for (const attribute of attributes(node))
      if (/^[^\\s"'<>/=]+$/.test(attribute.name))
        said.push(` ${attribute.name}="${escaped(attribute.value.slice(0, 5000))}"`);
    put(`<${name}${said.join("")}>`);
    if (empty.has(name)) continue;
    stack.push(`</${name}>`);
    let inside = children(node);
    const root = shadow(node);
    if (root) inside = children(root);
    else if (name === "slot") {
      const given = HTMLSlotElement.prototype.assignedNodes.call(node);
      if (given.length) inside = given;
    }
    for (let place = inside.length - 1; place >= 0; place -= 1) stack.push(inside[place]);
  }
  return [parts.join(""), [...lines].slice(0, 50000)];
}"""
"""The page as HTML, with open shadow trees in their places and without scripts; its lines of text
beside it. ``null`` where it is longer than the limit."""


class RenderError(Exception):
    """A page could not be rendered; one line for a person."""


class World:
    """Where functions run on a page's document that its scripts cannot reach."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._context: int | None = None

    async def call(self, function: str, argument: int) -> Any:
        """The result of a function of one number."""
        from playwright.async_api import Error

        if self._context is None:
            tree = await self._session.send("Page.getFrameTree")
            made = await self._session.send(
                "Page.createIsolatedWorld",
                {"frameId": tree["frameTree"]["frame"]["id"], "worldName": "kbkit"},
            )
            self._context = made["executionContextId"]
        try:
            answer = await self._session.send(
                "Runtime.evaluate",
                {
                    "expression": f"({function})({argument})",
                    "contextId": self._context,
                    "returnByValue": True,
                },
            )
        except Error as error:
            if "context" in str(error):  # document.open and its like bring a new one
                self._context = None
                return None
            raise
        if "exceptionDetails" in answer:
            raise RenderError("its document cannot be read")
        return answer["result"].get("value")
