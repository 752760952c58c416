// Reads {languages: {name: {script, stopWords}}, texts: [[language, text], ...]} from a file, and
// writes {results: [[terms, queryTerms], ...], unassigned: the characters not in this Unicode}.
import { readFileSync, writeFileSync } from "node:fs";
import { runInThisContext } from "node:vm";

import { Analyzer } from "../../kbkit/export/assets/analyzer.js";

const [input, output] = process.argv.slice(2);
/** @type {{languages: Record<string, {script: string, stopWords: string[]}>, texts: string[][]}} */
const { languages, texts } = JSON.parse(readFileSync(input, "utf8"));

/** @type {Map<string, Analyzer>} */
const analyzers = new Map();
for (const [language, { script, stopWords }] of Object.entries(languages)) {
  runInThisContext(script); // as a classic script
  analyzers.set(language, new Analyzer({ language, stopWords, stem: kbkitStemmers[language] }));
}

const results = texts.map(([language, text]) => {
  const analyzer = /** @type {Analyzer} */ (analyzers.get(language));
  return [analyzer.terms(text), analyzer.queryTerms(text)];
});

const unassigned = new Set(texts.flatMap(([, text]) => text.match(/\p{Cn}/gu) ?? []));
writeFileSync(output, JSON.stringify({ results, unassigned: [...unassigned] }));
