// Ranking as in kbkit/retrieval/fusion.py and ranking.py, which name the sources of the formulas.

const NEIGHBOURS = 4; // other chunks of a document that support a chunk
const DOUBT = 3; // prior weight, in documents, of chunks as good as the best
const FURTHER = 0.9; // factor of each hit of a document beyond its first ones, cumulative
const COMPARED = 60; // candidates of a pool compared for near duplicates
const DUPLICATE = 0.5; // factor of a near duplicate of a better candidate
const INDEX = 0.1; // factor of a chunk of a page that is mostly links
const FEW = 10; // number of documents at which scores of whole documents count half
const STATIC = { summary: 0.3, page: 0.6 }; // factors of weights with static vectors of summaries
const NEAR_SUMMARY = 0.5; // cosine from which a summary counts in full
const UNLIKELY = 0.1; // probability below which a passage hardly answers its query
const MEASURED = 300; // minimum chunks for this probability
const K1 = 1.2;
const B = 0.75;

const { fround } = Math;

/**
 * Settings of a knowledge base's ranking.
 *
 * @typedef {object} Settings
 * @property {number} dense
 * @property {number} document
 * @property {number} title
 * @property {number} heading
 * @property {number} summary
 * @property {number} page
 * @property {number} rating
 * @property {number} perDocument
 * @property {number} duplicates
 * @property {number} candidates
 */

/**
 * Corpus statistics of BM25. A term's frequency is the number of chunks that contain it.
 *
 * @typedef {{chunks: number, average: number, frequencies: Map<string, number>}} Statistics
 */

/**
 * The candidates of one knowledge base for a query; columns are as long as `rows`.
 *
 * @typedef {object} Pool
 * @property {Settings} settings
 * @property {string[]} terms  of the query, the last one completed
 * @property {number[]} rows  chunks, ascending
 * @property {number[]} owners  the document of each
 * @property {number[]} sizes  number of chunks of that document
 * @property {number[]} cosine
 * @property {Statistics} statistics
 * @property {(statistics: Statistics) => number[]} bm25
 * @property {Statistics} pageStatistics  of documents
 * @property {(statistics: Statistics) => number[]} page  BM25 of their documents as a whole
 * @property {number[]} summary  cosine of the query and the summary of their document
 * @property {string} summaryEmbedder  embedder of the summaries; empty without summaries
 * @property {number[]} title
 * @property {number[]} heading
 * @property {boolean[]} indexes  whether their document is mostly links
 * @property {number[]} rating
 * @property {(place: number) => Float64Array | null} vector  a unit vector; null if not loaded
 */

/**
 * A ranked candidate: its pool and its number there.
 *
 * @typedef {{pool: Pool, place: number, score: number}} Ranked
 */

/**
 * The candidates of all pools, best first; those without a score are left out.
 *
 * @param {Pool[]} pools  of one query, one per knowledge base; each is ranked by its settings
 * @param {number} limit
 * @returns {Ranked[]}
 */
export function rank(pools, limit) {
  if (!pools.length) return [];
  const documents = numbered(pools);
  const sizes = pools.flatMap((pool) => pool.sizes);
  const parts = fused(pools, documents, sizes);
  const total = parts.total;
  /** @type {boolean[]} */
  const isDuplicate = [];
  for (const [pool, start] of placed(pools)) {
    const scores = total.slice(start, start + pool.rows.length);
    isDuplicate.push(...duplicates(pool.vector, scores, pool.settings.duplicates));
  }
  const places = placesWithin(total, documents);
  const limits = each(pools, (pool) => pool.settings.perDocument);
  const final = total.map((_, i) => {
    const further = Math.max(places[i] - limits[i] + 1, 0);
    const factor = FURTHER ** further * (isDuplicate[i] ? DUPLICATE : 1);
    return parts.columns.reduce((sum, column) => sum + column[i] * factor, 0);
  });
  const common = byScore(final).filter((i) => parts.common[i]);
  return common.slice(0, limit).map((i) => {
    const [pool, start] = /** @type {[Pool, number]} */ (
      placed(pools).findLast(([candidate, first]) => first <= i && candidate.rows.length)
    );
    return { pool, place: i - start, score: final[i] };
  });
}

/**
 * Each pool, and the number of candidates in earlier pools.
 *
 * @param {Pool[]} pools
 * @returns {[Pool, number][]}
 */
function placed(pools) {
  let start = 0;
  return pools.map((pool) => {
    start += pool.rows.length;
    return [pool, start - pool.rows.length];
  });
}

/**
 * A value of each pool, repeated for each of its candidates.
 *
 * @template T
 * @param {Pool[]} pools
 * @param {(pool: Pool, which: number) => T} value
 */
function each(pools, value) {
  return pools.flatMap((pool, which) => {
    const repeated = value(pool, which);
    return pool.rows.map(() => repeated);
  });
}

/**
 * The document of each candidate, numbered from 0 across all pools.
 *
 * @param {Pool[]} pools
 */
function numbered(pools) {
  /** @type {Map<string, number>} */
  const numbers = new Map();
  return pools.flatMap((pool, which) =>
    pool.owners.map((owner) => {
      const name = `${which} ${owner}`;
      const number = numbers.get(name) ?? numbers.size;
      numbers.set(name, number);
      return number;
    }),
  );
}

/**
 * The parts of the candidates' scores, and their sums.
 *
 * @param {Pool[]} pools
 * @param {number[]} documents
 * @param {number[]} sizes
 */
function fused(pools, documents, sizes) {
  const pageFactors = documentFactors(pools);
  const weights = each(pools, ({ settings }, which) => {
    const summary = settings.summary * pageFactors[which].summary;
    const page = settings.page * pageFactors[which].page;
    const whole = 1 + settings.document + settings.title + settings.heading + summary + page;
    return { ...settings, lexical: 1 - settings.dense, summary, page, whole };
  });
  const statistics = together(pools.map((pool) => pool.statistics));
  const ofPages = together(pools.map((pool) => pool.pageStatistics));
  /** @type {(scores: number[], part: "dense" | "lexical" | "title" | "heading" | "summary" | "page") => number[]} */
  const weighed = (scores, part) =>
    scores.map((score, i) => (weights[i][part] * score) / weights[i].whole);
  const cosine = normalised(pools.flatMap((pool) => pool.cosine));
  const bm25 = normalised(
    pools.flatMap((pool) => pool.bm25(statistics)),
    enough(pools, statistics),
  );
  const dense = weighed(cosine, "dense");
  const lexical = weighed(bm25, "lexical");
  const base = dense.map((score, i) => score + lexical[i]);
  const document = documentEvidence(base, documents, sizes).map((x, i) => weights[i].document * x);
  const title = weighed(
    pools.flatMap((pool) => pool.title),
    "title",
  );
  const heading = weighed(
    pools.flatMap((pool) => pool.heading),
    "heading",
  );
  const summaries = pools.flatMap((pool) => pool.summary);
  const summary = weighed(normalised(summaries, NEAR_SUMMARY), "summary");
  const pages = pools.flatMap((pool) => pool.page(ofPages));
  const page = weighed(normalised(pages, enough(pools, ofPages)), "page");
  const sum = base.map((x, i) => x + document[i] + title[i] + heading[i] + summary[i] + page[i]);
  const prior = pools.flatMap((pool) => pool.rating);
  const rating = sum.map((score, i) => score * weights[i].rating * prior[i]);
  const factors = pools.flatMap((pool) => pool.indexes).map((index) => (index ? INDEX : 1));
  const columns = [dense, lexical, document, title, heading, summary, page, rating].map((column) =>
    column.map((x, i) => x * factors[i]),
  );
  return {
    common: sum.map((_, i) => dense[i] + lexical[i] + summary[i] + page[i] > 0),
    columns,
    total: sum.map((_, i) => columns.reduce((total, column) => total + column[i], 0)),
  };
}

/**
 * Factors of each pool's weights of summaries and whole documents: lower with static vectors of
 * summaries, and with few documents in all.
 *
 * @param {Pool[]} pools
 */
function documentFactors(pools) {
  const documents = pools.reduce((sum, pool) => sum + pool.pageStatistics.chunks, 0);
  const share = documents / (documents + FEW);
  return pools.map((pool) => {
    const { summary, page } = pool.summaryEmbedder.startsWith("static:")
      ? STATIC
      : { summary: 1, page: 1 };
    return { summary: summary * share, page: page * share };
  });
}

/**
 * The combined statistics of several knowledge bases.
 *
 * @param {Statistics[]} several
 * @returns {Statistics}
 */
function together(several) {
  if (several.length === 1) return several[0];
  const chunks = several.reduce((sum, part) => sum + part.chunks, 0);
  const length = several.reduce((sum, part) => sum + Math.round(part.average * part.chunks), 0);
  /** @type {Map<string, number>} */
  const frequencies = new Map();
  for (const one of several) {
    for (const [term, n] of one.frequencies)
      frequencies.set(term, n + (frequencies.get(term) ?? 0));
  }
  return { chunks, average: chunks ? length / chunks : 0, frequencies };
}

/**
 * @param {Statistics} statistics
 * @param {string} term
 */
export function idf({ chunks, frequencies }, term) {
  const n = frequencies.get(term) ?? 0;
  return Math.log(1 + Math.max(0, chunks - n + 0.5) / (n + 0.5));
}

/**
 * A term's contribution to the BM25 of a text, rounded as in Python.
 *
 * @param {number} weight  the term's idf
 * @param {number} average  length of a text
 * @returns {(count: number, length: number) => number}
 */
export function impact(weight, average) {
  const [low, slope] = [fround(K1 * (1 - B)), fround((K1 * B) / (average || 1))];
  const ceiling = fround(weight * (K1 + 1));
  return (count, length) =>
    fround(fround(ceiling * count) / fround(count + fround(low + fround(slope * length))));
}

/**
 * A term's contribution to the BM25 of a candidate.
 *
 * @param {Statistics} statistics
 * @param {string} term
 * @param {number} count
 * @param {number} length  of the text
 */
export function exactImpact(statistics, term, count, length) {
  const norm = K1 * (1 - B + (B * length) / statistics.average);
  return idf(statistics, term) * ((count * (K1 + 1)) / (count + norm));
}

/**
 * The BM25 from which words count in full: half of the maximum of the query's terms.
 *
 * @param {Pool[]} pools
 * @param {Statistics} statistics
 */
function enough(pools, statistics) {
  const sums = pools.map(({ terms }) =>
    [...new Set(terms)].reduce((sum, term) => sum + idf(statistics, term), 0),
  );
  return ((K1 + 1) / 2) * Math.max(...sums);
}

/**
 * Scores from 0 to 1: negative scores become 0, and the best or `full`, if that is more, becomes 1.
 *
 * @param {number[]} scores
 * @param {number} [full]
 */
function normalised(scores, full = 0) {
  const positive = scores.map((score) => Math.max(score, 0));
  const top = positive.reduce((most, score) => Math.max(most, score), full);
  return top > 0 ? positive.map((score) => score / top) : positive;
}

/**
 * Support of each chunk by its document: the mean of its second to fifth best scores. Missing
 * chunks of short documents count a share of the best score, the average share in long documents.
 *
 * @param {number[]} scores
 * @param {number[]} documents
 * @param {number[]} sizes
 */
function documentEvidence(scores, documents, sizes) {
  const places = placesWithin(scores, documents);
  /** @type {number[]} */
  const best = [];
  /** @type {number[]} */
  const others = [];
  scores.forEach((score, i) => {
    const document = documents[i];
    if (places[i] === 0) best[document] = score;
    else if (places[i] <= NEIGHBOURS)
      others[document] = (others[document] ?? 0) + score / NEIGHBOURS;
  });
  const long = documents.filter(
    (_, i) => places[i] === 0 && sizes[i] > NEIGHBOURS && scores[i] > 0,
  );
  const total = long.reduce((sum, document) => sum + (others[document] ?? 0) / best[document], 0);
  const share = (total + DOUBT) / (long.length + DOUBT);
  return scores.map((_, i) => {
    const missing = Math.max(NEIGHBOURS - (sizes[i] - 1), 0) / NEIGHBOURS;
    return (others[documents[i]] ?? 0) + missing * share * best[documents[i]];
  });
}

/**
 * Which of the best chunks of one pool are near duplicates of better ones.
 *
 * @param {(place: number) => Float64Array | null} vector
 * @param {number[]} scores
 * @param {number} threshold
 */
function duplicates(vector, scores, threshold) {
  const flags = scores.map(() => false);
  if (threshold >= 1) return flags;
  const best = byScore(scores).slice(0, COMPARED);
  const vectors = best.map(vector);
  vectors.forEach((first, i) => {
    if (!first || flags[best[i]]) return;
    for (let j = i + 1; j < best.length; j++) {
      const second = vectors[j];
      if (second && dot(first, second) > threshold) flags[best[j]] = true;
    }
  });
  return flags;
}

/**
 * The rank of each score within its group, from 0; equal scores keep their order.
 *
 * @param {number[]} scores
 * @param {number[]} groups
 */
function placesWithin(scores, groups) {
  /** @type {number[]} */
  const counts = [];
  /** @type {number[]} */
  const places = new Array(scores.length);
  for (const i of byScore(scores)) {
    places[i] = counts[groups[i]] ?? 0;
    counts[groups[i]] = places[i] + 1;
  }
  return places;
}

/**
 * The positions of the scores, best first; equal scores keep their order.
 *
 * @param {ArrayLike<number>} scores
 */
export function byScore(scores) {
  return Array.from(scores, (_, i) => i).sort((a, b) => scores[b] - scores[a]);
}

/**
 * @param {Float64Array} a
 * @param {Float64Array} b
 */
export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
  return sum;
}

/**
 * Whether a passage hardly answers its query.
 *
 * @param {number} score
 * @param {Pool[]} pools  what was searched
 */
export function isWeak(score, pools) {
  const probability = 1 / (1 + Math.exp(4.47 - 6.23 * score));
  return (
    probability < UNLIKELY &&
    pools.reduce((sum, pool) => sum + pool.statistics.chunks, 0) >= MEASURED
  );
}
