import assert from "node:assert/strict";
import { test } from "node:test";

import { Engine } from "../../kbkit/export/assets/engine.js";
import { result } from "../../kbkit/export/assets/material.js";
import { nibbles, varints } from "../../kbkit/export/assets/packing.js";
import { idf, rank } from "../../kbkit/export/assets/ranking.js";
import { Service } from "../../kbkit/export/assets/service.js";
import { Matches, ends, marked, snippet } from "../../kbkit/export/assets/snippet.js";

const words = {
  terms: (/** @type {string} */ text) => text.toLowerCase().match(/\w+/g) ?? [],
};

test("varints and nibbles are read", () => {
  assert.deepEqual([...varints("AH+AAawC")], [0, 127, 128, 300]);
  assert.deepEqual([...nibbles("gfE=")], [-7, 0, -7, 7]);
  assert.deepEqual([...varints("")], []);
});

/**
 * @param {number[]} bm25
 * @param {number[]} owners
 */
function pool(bm25, owners) {
  const zeros = bm25.map(() => 0);
  return {
    settings: {
      dense: 0,
      document: 0,
      title: 0,
      heading: 0,
      summary: 0,
      page: 0,
      rating: 0,
      perDocument: 1,
      duplicates: 0.9,
      candidates: 10,
    },
    terms: [],
    rows: bm25.map((_, i) => i),
    owners,
    sizes: owners.map(() => 1),
    cosine: zeros,
    statistics: { chunks: bm25.length, average: 1, frequencies: new Map() },
    bm25: () => bm25,
    pageStatistics: { chunks: 10, average: 1, frequencies: new Map() },
    page: () => zeros,
    summary: zeros,
    summaryEmbedder: "",
    indexes: bm25.map(() => false),
    title: zeros,
    heading: zeros,
    rating: zeros,
    vector: () => null,
  };
}

test("pools are ranked together, and documents of different pools are kept apart", () => {
  const [first, second] = [pool([4, 0], [0, 1]), pool([3, 3.9], [0, 0])];
  const ranked = rank([first, second], 10).map((hit) => [hit.pool === first, hit.place]);
  assert.deepEqual(ranked, [
    [true, 0],
    [false, 1],
    [false, 0],
  ]);
  assert.deepEqual(rank([], 10), []);
});

test("each pool is ranked by its own settings", () => {
  const rows = { ...pool([1, 9], [0, 1]), cosine: [0.9, 0.3] };
  const meaning = { ...rows, settings: { ...rows.settings, dense: 1 } };
  for (const pools of [
    [meaning, rows],
    [rows, meaning],
  ]) {
    const scores = rank(pools, 9).map((hit) => [hit.pool === meaning, hit.place, hit.score]);
    scores.sort((a, b) => Number(b[2]) - Number(a[2]) || Number(b[0]) - Number(a[0]));
    assert.deepEqual(scores, [
      [true, 0, 1],
      [false, 1, 1],
      [true, 1, 0.3 / 0.9],
      [false, 0, 1 / 9],
    ]);
  }
});

test("a word is as rare as in all pools together", () => {
  const about = (/** @type {number} */ chunks, /** @type {string} */ term) => {
    const statistics = { chunks, average: 1, frequencies: new Map([[term, 1 + chunks / 20]]) };
    return { ...pool([0], [0]), statistics, bm25: (/** @type {any} */ all) => [idf(all, term)] };
  };
  const [large, small] = [about(400, "long"), about(5, "quince")];
  assert.ok(large.bm25(large.statistics)[0] > small.bm25(small.statistics)[0]);
  assert.equal(rank([large, small], 1)[0].pool, small);
});

test("a near duplicate of a better hit gives way", () => {
  const same = { ...pool([4, 3.9, 3], [0, 1, 2]), vector: () => Float64Array.of(1) };
  assert.deepEqual(
    rank([{ ...same, vector: (n) => (n < 2 ? Float64Array.of(1) : null) }], 3).map((x) => x.place),
    [0, 2, 1],
  );
});

test("a snippet keeps the lines of its text", () => {
  const matches = new Matches(["git", "merge"], words);
  const code = "git merge --abort\nif x; then\n    git reset";
  assert.equal(snippet(code, matches), code);
  const cut = snippet(`${"nothing at all ".repeat(30)}\n${code}`, matches, 90);
  assert.ok(cut.includes(`\n${code}`), cut);
});

test("a snippet is the window with most terms, and marks them without their marks", () => {
  const text = `${"filler ".repeat(60)}here is (green) tea ${"filler ".repeat(60)}`.trim();
  const matches = new Matches(["green", "tea"], words);
  const cut = snippet(text, matches);
  assert.match(cut, /^… .*\(green\) tea.* …$/);
  assert.ok(cut.length < 250);
  const parts = marked(cut, matches);
  assert.deepEqual([parts[1], parts[3]], ["green", "tea"]);
  assert.ok(parts[0].endsWith("here is ("));
  assert.equal(parts.join(""), cut);
});

test("a passage is found by how it begins and ends", () => {
  assert.equal(ends("Few words … here"), "Few words   here");
  const long = `${"first ".repeat(20)}between ${"last ".repeat(20)}`.trim();
  assert.match(ends(long), /^(first ?){8}…(last ?){9}$/);
  const halves = ends("\u{1F600}".repeat(60).slice(1)); // begins and is cut within a letter
  assert.ok(encodeURIComponent(halves).includes("%E2%80%A6"));
});

const hit = {
  kb: "kb",
  kbTitle: "K",
  row: 0,
  score: 1,
  weak: false,
  url: "a.html?passage=one#x",
  place: "a.html#x",
  page: "a.html",
  title: "T",
  heading: "<b>H",
  titleParts: ["T"],
  headingParts: ["", "<b>", "H"],
  snippet: ["<img src=x onerror=alert(1)> ", "dictionary", ""],
  kind: "manual",
  tags: [],
  day: 0,
  stale: false,
  rating: 0,
  section: "",
};

test("texts are escaped on their way into the search box", () => {
  const [[section, page]] = result("dict", [hit], true).items;
  assert.equal(section.title, "<mark>&lt;b&gt;</mark>H");
  assert.equal(section.text, "&lt;img src=x onerror=alert(1)&gt; <mark>dictionary</mark>");
  assert.deepEqual(section.terms, { dictionary: true, "<b>": true });
  assert.equal(page.location, "a.html");
  assert.deepEqual(page.tags, ["K"]);
});

test("a place of a page is shown once, and the page itself is among them", () => {
  const again = { ...hit, url: "a.html?passage=two#x", score: 0.9 };
  const top = { ...hit, url: "a.html?passage=three", place: "a.html", score: 0.5 };
  const hits = [hit, again, top];
  const [group] = result("x", hits, false).items;
  assert.deepEqual(
    group.map(({ location, score }) => [location, score]),
    [
      ["a.html?passage=one#x", 1],
      ["a.html?passage=three", 0.5],
    ],
  );
});

test("a word of a hit is suggested for the one that is typed", () => {
  const titled = [{ ...hit, title: "The Dictionary" }];
  assert.deepEqual(result("merge dic", titled, false).suggest, ["dictionary"]);
  assert.deepEqual(result("merge ", titled, false).suggest, []);
});

/** An engine of one small index. @param {boolean} directories */
function engine(directories) {
  const core = {
    format: 10,
    language: "english",
    stop: "the of",
    settings: pool([], []).settings,
    chunks: 2,
    average: 1,
    lengths: "AQE=",
    sizes: "AQE=",
    texts: "Ag==",
    kinds: ["manual"],
    kind: "AAA=",
    tags: [],
    tag: [],
    days: "AAA=",
    stale: [],
    ratings: [],
    prior: [],
    indexes: [],
    firsts: "k",
  };
  /** @type {Record<string, any>} */
  const shards = {
    "i/core.js": core,
    "i/t/0.js": { t: "kettl", n: [2], p: "AAABAA==" },
    "i/x/0.js": {
      x: [
        ["a kettle", "", "top"],
        ["kettle", "", ""],
      ],
      d: [
        [0, "a b/index.md", "One"],
        [1, "c.md", "Two"],
      ],
    },
  };
  const files = {
    load: async (/** @type {string} */ path) => {
      if (!shards[path]) throw new Error(path);
      return shards[path];
    },
    run: () => {
      /** @type {any} */ (globalThis).kbkitStemmers = {
        english: (/** @type {string} */ word) => word.replace(/e$/, ""),
      };
    },
  };
  const kbs = [{ name: "k", title: "K", base: "kb/", folder: "i" }];
  return { found: new Engine({ kbs, directories }, files), shards };
}

test("addresses are those of the site", async () => {
  const urls = async (/** @type {boolean} */ directories) =>
    (await engine(directories).found.search("the kettle")).map(({ url }) => url);
  assert.deepEqual(await urls(false), [
    "kb/a%20b/index.html?passage=a%20kettle#top",
    "kb/c.html?passage=kettle",
  ]);
  assert.deepEqual(await urls(true), ["kb/a%20b/?passage=a%20kettle#top", "kb/c/?passage=kettle"]);
});

test("a shard that could not be read is asked for again", async () => {
  const { found, shards } = engine(false);
  const { "i/t/0.js": kept } = shards;
  delete shards["i/t/0.js"];
  await assert.rejects(found.search("kettle"), /t.0/);
  shards["i/t/0.js"] = kept;
  assert.equal((await found.search("kettle")).length, 2);
  assert.deepEqual(await found.search("kettle", { kbs: ["other"] }), []);
});

test("the model is fetched behind the first answer, and where it is not there nobody notices", async () => {
  const { shards } = engine(false);
  const kbs = [{ name: "k", title: "K", base: "kb/", folder: "i" }];
  /** What is asked for and told. @param {string} model @param {any} navigator */
  const asked = async (model, navigator) => {
    /** @type {any[]} */
    const told = [];
    const files = {
      load: async (/** @type {string} */ path) => shards[path],
      run: () => undefined,
      bytes: (/** @type {string} */ path) => (told.push(path), Promise.reject(new Error("404"))),
    };
    Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
    const post = (/** @type {any} */ data) => told.push(data.kbkit ?? data.data.items.length);
    const service = new Service({ kbs, directories: false, model }, files, post);
    await service.answer({ kbkit: "warm", id: 0, query: "", options: {}, model: "another" });
    await service.answer({ type: 2, data: "" });
    await service.answer({ kbkit: "search", id: 1, query: "kettle", options: {} });
    await service.answer({ type: 2, data: "kettle" });
    await new Promise(setImmediate);
    return told;
  };
  assert.deepEqual(await asked("", {}), [0, "hits", 2]);
  assert.deepEqual(await asked("m", { connection: { saveData: true } }), [0, "hits", 2]);
  const [nothing, hits, ...files] = await asked("m", {});
  assert.deepEqual([nothing, hits, files.pop()], [0, "hits", 2]);
  assert.deepEqual(files.slice(0, 3), ["m/vocabulary.txt", "m/embeddings.bin", "m/layer-0.bin"]);
  assert.equal(files.length, 8);
});

test("of what is typed only the last is answered, and nothing is loaded for the rest", async () => {
  const { shards } = engine(false);
  /** @type {any[]} */
  const posted = [];
  /** @type {string[]} */
  const loaded = [];
  const load = async (/** @type {string} */ path) => (loaded.push(path), shards[path]);
  const kbs = [{ name: "k", title: "K", base: "kb/", folder: "i" }];
  const files = { load, run: () => undefined };
  const service = new Service({ kbs, directories: false }, files, (data) => posted.push(data));
  const answers = [];
  for (const data of ["k", "kett", "kettle"]) {
    answers.push(service.answer({ type: 2, data }));
    for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  }
  assert.deepEqual(loaded, ["i/core.js"]);
  await Promise.all(answers);
  assert.deepEqual(loaded, ["i/core.js", "i/t/0.js", "i/x/0.js"]);
  assert.equal(posted.length, 1);
  assert.equal(posted[0].data.items.length, 2);
});
