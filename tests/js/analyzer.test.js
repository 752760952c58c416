import assert from "node:assert/strict";
import test from "node:test";

import { Analyzer, fold } from "../../kbkit/export/assets/analyzer.js";

const STOP_WORDS = ["a", "the", "is", "with", "for", "what", "how", "to"];
const analyzer = new Analyzer({
  language: "english",
  stopWords: STOP_WORDS,
  stem: (word) => word.replace(/s$/, ""),
});

test("a name gives its whole and its parts, however it is typed", () => {
  for (const way of ["append_events", "appendEvents", "append-events"]) {
    assert.deepEqual(analyzer.terms(way), ["appendevent", "append", "event"]);
  }
  assert.deepEqual(
    analyzer.terms("Call os.path, I/O."),
    ["call", "os.path", "o", "path", "io"].concat("i", "o"),
  );
  assert.deepEqual(analyzer.terms("C++17 and C#"), ["c++17", "c++", "and", "c#"]);
});

test("stop words are left out unless they are named or spoken of", () => {
  assert.deepEqual(analyzer.terms("the file with `with`"), ["file", "with"]);
  assert.deepEqual(analyzer.queryTerms("what is the with statement"), ["with", "statement"]);
  assert.deepEqual(analyzer.queryTerms("how to"), ["how", "to"]);
});

test("the terms of a query are different ones", () => {
  assert.deepEqual(analyzer.queryTerms("files and FILES"), ["file", "and"]);
});

test("names of what objects have are words like others", () => {
  assert.deepEqual(analyzer.terms("__proto__ constructor"), ["__proto__", "proto", "constructor"]);
});

test("a stemmer that leaves nothing is not heeded, and terms are cut by code points", () => {
  const none = new Analyzer({ language: "german", stopWords: [], stem: () => "" });
  assert.deepEqual(none.terms("Wort"), ["wort"]);
  assert.deepEqual(none.terms("𐐨".repeat(70)), ["𐐨".repeat(64)]);
});

test("case is folded as Python does", () => {
  assert.equal(fold("STRAẞE ΣΟΦΟΣ İ O’Reilly"), "strasse σοφοσ i o'reilly");
});
