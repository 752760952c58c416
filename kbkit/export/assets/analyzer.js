// The analyzer turns text into index terms. The docstring of kbkit/text/analysis.py states the
// rules, with the numbers used below; a test compares both implementations. Python's \w is spelled
// out here, since JavaScript's is ASCII.

const MAX_TERM_LENGTH = 64;
const MAX_CACHED = 20_000;

const LETTER = String.raw`[\p{L}\p{Nl}\p{No}]`;
const SPACE = String.raw`[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]`;
const NO_SPACE = SPACE.replace("[", "[^");

// 1. Normalise.
const ASCII = /^[\0-\x7f]*$/;
const UNSEEN = /[\u00ad\u200b-\u200d\u2060-\u2064\ufeff]/g;

// 4. Scripts without spaces, and Hangul.
const SPACELESS = new RegExp(
  String.raw`([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff` +
    String.raw`\uac00-\ud7a3\uf900-\ufaff\u{20000}-\u{2fa1f}\u{30000}-\u{323af}]+)`,
  "u",
);

// 5. Contractions.
const CONTRACTION = /^(.+?)(?:n['’]t|['’](?:s|t|re|ve|ll|d|m))$/iu;

// 6. Segments and pieces.
const END = /\+\+\p{Nd}*$|#$/gu;
const SEGMENT_JOINT = /::?|->|[./@]/u;
const EMPTY_SEGMENT = /^[-_'’]*$/u;
const GLUE = new RegExp(String.raw`[_'’]|(?<=${LETTER})-|-(?=${LETTER})`, "gu");
const PIECE = /[-_'’]+|(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])/u;
const PARTS = /[-_'’]+/u;
const NUMBERED = /^([a-z]{2,})([0-9]{3,})$/;
const ACCENTS = /(?<=[a-z\u0370-\u03ff])[\u0300-\u036f]+/gu;
/** @type {Record<string, string>} */
const PLAIN_LETTERS = { ø: "o", đ: "d", ł: "l", ð: "d", ı: "i", þ: "th", æ: "ae", œ: "oe" };
/** @type {Record<string, string>} */
const SPELLED = { ä: "ae", ö: "oe", ü: "ue", å: "aa", ø: "oe" };
const VERSION = /^v\p{Nd}+\./u;

const PLAIN = /^[A-Za-z0-9]+$/;
const ALPHANUMERIC = /^[\p{L}\p{N}]+$/u;
const ONE_LETTER = /^\p{L}$/u;
const ONE_POINT = /^.$/su;
const NOT_UPPER = /\p{Lowercase}|\p{Lt}/u;
const UPPER = /\p{Uppercase}/u;

const OPERATOR =
  String.raw`\?\?=?|\?[.:]|&&|\|\||[!=]==?|<=>|[<>]=|<<=?|>>=?|[\-=]>|<-|[\-+*\/%:|&^]=` +
  String.raw`|\*\*|\|>|=~|!~|!!|\+\+`;
const ALONE = new RegExp(`^(?:${OPERATOR})$`, "u");

/**
 * The regular expressions that are applied to a whole text.
 *
 * @param {{word: string, letter: string, begin: string, mark: string}} classes  `begin`:
 *   characters after a sign and some joints
 */
function expressions({ word, letter, begin, mark }) {
  const joint = String.raw`(?:[.\-'’]|(?:::?|->|[/@])(?=${begin}))`;
  return {
    // 2. Tokens.
    token: new RegExp(
      `(?<!${NO_SPACE.replace("]", "`(]")})(?:${OPERATOR})(?!${NO_SPACE.replace("]", "`).,;]")})|` +
        "(?:[`@#$.\\-](?:" +
        `(?<=\`)(?:(?:--?|[@#$.])(?=${begin}))?` + // a backtick, perhaps with a sign
        String.raw`|(?<!(?:${word}|[.\-)\]]).)(?:(?<=-)-)?(?=${begin})` + // a sign
        `))?${word}+` +
        `(?:${joint}${word}+|${mark}+${word}*)*` +
        String.raw`(?:\+\+(?:\p{Nd}\p{Nd}?)?(?!${word})|(?<=(?<!${word})${letter})#(?!${word}))?` +
        "`?",
      "gu",
    ),
    words: new RegExp(`${word}+`, "gu"),
    quoted: new RegExp(`(?<!${word})["'“„‘«](${word}+)["'”“’»](?!${word})`, "gu"),
    // Stop words that an English question mentions: after an article, or before a kind of
    // statement. İ is an i in another case in Python, but not in JavaScript.
    spokenOf: new RegExp(
      `(?<!${NO_SPACE})(?:` +
        `(?:an?|the)${SPACE}+(?!(?:above|below|few|further|more|most|only|other|own|same|so|such` +
        `|then|too|under|used?|very)(?!${word}))(${word}+)(?=[,;.!?)]*(?:${SPACE}|$))` +
        `|(for|wh[iİ]le)(?=${SPACE}+loops?(?!${word}))` +
        `|([iİ]f|w[iİ]th|wh[iİ]le)(?=${SPACE}+statements?(?!${word}))` +
        `|(from|hav[iİ]ng|where)(?=${SPACE}+clauses?(?!${word}))` +
        `|(and|between|[iİ]n|[iİ]s|not|or)(?=${SPACE}+operators?(?!${word})))`,
      "giu",
    ),
  };
}

// Large classes take tens of milliseconds to compile, and most queries do not need them.
const IN_ASCII = expressions({
  word: "[A-Za-z0-9_]",
  letter: "[A-Za-z]",
  begin: "[A-Za-z_]",
  mark: String.raw`[\u0300]`, // a placeholder
});
const IN_UNICODE = expressions({
  word: String.raw`[\p{L}\p{N}_]`,
  letter: LETTER,
  begin: String.raw`[\p{L}\p{Nl}\p{No}_]`,
  mark: String.raw`\p{M}`,
});

/**
 * Turns text into terms for one language.
 */
export class Analyzer {
  /** @type {Set<string>} */
  #stopWords;
  /** @type {(word: string) => string} */
  #stem;
  /** @type {boolean} */
  #english;
  /** @type {Map<string, string[]>} */
  #memory = new Map();
  /** @type {boolean} */
  #asks;
  /** @type {Analyzer} */
  #asking;

  /**
   * @param {object} options
   * @param {string} options.language  a Snowball language name, such as `english`
   * @param {Iterable<string>} options.stopWords  folded stop words of Python's analyzer
   * @param {(word: string) => string} options.stem  Snowball's stemmer of the language, written by
   *   kbkit/export/index_terms.py
   * @param {boolean} [options.asks]  return one form of each word, for queries
   */
  constructor({ language, stopWords, stem, asks = false }) {
    this.#stopWords = new Set(stopWords);
    this.#stem = stem;
    this.#english = language === "english" || language === "porter";
    this.#asks = asks;
    this.#asking = asks ? this : new Analyzer({ language, stopWords, stem, asks: true });
  }

  /**
   * The terms of a text, in order, with repetitions, without stop words.
   *
   * @param {string} text
   * @returns {string[]}
   */
  terms(text) {
    return tokens(normal(text)).flatMap((token) => this.#remembered(token));
  }

  /**
   * The distinct terms of a query, in order. Words in quotation marks count as named; in English
   * also mentioned stop words. If no term remains, all words count as named.
   *
   * @param {string} text
   * @returns {string[]}
   */
  queryTerms(text) {
    text = normal(text);
    if (isUpper(text)) text = text.toLowerCase();
    const { quoted, spokenOf, words } = expressionsFor(text);
    let marked = text.replace(quoted, "`$1`");
    if (this.#english) marked = marked.replace(spokenOf, inBackticks);
    let terms = this.#asking.terms(marked);
    if (!terms.length) terms = this.terms(text);
    if (!terms.length) terms = this.#asking.terms(text.replace(words, "`$&`"));
    return [...new Set(terms)];
  }

  /** @param {string} token */
  #remembered(token) {
    let terms = this.#memory.get(token);
    if (!terms) {
      terms = this.#termsOf(token);
      if (this.#memory.size < MAX_CACHED && token.length <= MAX_TERM_LENGTH) {
        this.#memory.set(token, terms);
      }
    }
    return terms;
  }

  /**
   * The terms of one token.
   *
   * @param {string} token
   * @returns {string[]}
   */
  #termsOf(token) {
    if (ALONE.test(token)) return [token];
    if (token.includes("`")) {
      const quoted = strip(token, "`");
      const folded = fold(quoted);
      return this.#stopWords.has(folded) ? this.#word(folded, true) : this.#remembered(quoted);
    }
    const folded = fold(token);
    const rest = token.slice(1);
    if (PLAIN.test(token) && (rest === folded.slice(1) || rest === rest.toUpperCase())) {
      return this.#word(folded, token.length > 1 && isUpper(token)); // by far the commonest case
    }
    if (SPACELESS.test(token)) return this.#spaceless(token);
    if (folded.includes("'") && !isLonger(token, MAX_TERM_LENGTH)) {
      const contracted = CONTRACTION.exec(token);
      if (contracted) {
        const terms = this.#remembered(contracted[1]);
        return terms.length || this.#asks ? terms : this.#word(together(folded), false);
      }
    }
    const body = token.replace(/^[-@#$.]+/u, "");
    const sign = token.slice(0, token.length - body.length);
    const end = (body.match(END) ?? []).join("");
    const segments = body
      .slice(0, body.length - end.length)
      .split(SEGMENT_JOINT)
      .filter((segment) => !EMPTY_SEGMENT.test(segment));
    if (!segments.length) return [];
    if (segments.length === 1 && !sign && !end) return this.#segment(segments[0]);
    const wholes = this.#wholes(sign, segments.map(together), end);
    if (end && ONE_POINT.test(segments[0])) return [...new Set(wholes)]; // C++ is not C
    const parts = segments.flatMap((segment) => this.#remembered(segment));
    return [...new Set(wholes.concat(parts))];
  }

  /**
   * The terms of a whole token.
   *
   * @param {string} sign
   * @param {string[]} segments  joined segments
   * @param {string} end
   */
  #wholes(sign, segments, end) {
    const letters = segments.length > 1 && segments.every((segment) => ONE_LETTER.test(segment));
    const whole = segments.join(letters ? "" : ".");
    const terms = sign ? [sign + whole, sign + segments[0]] : [];
    if (letters) {
      terms.push(this.#stemmed(whole));
    } else if (segments.length > 1) {
      terms.push(whole);
      if (VERSION.test(whole)) terms.push(whole.slice(1));
    }
    if (end) terms.push(whole + end, whole + end.replace(/[0-9]+$/u, ""));
    return terms.map((term) => cut(bare(term)));
  }

  /** @param {string} segment */
  #segment(segment) {
    const pieces = segment.split(PIECE).filter(Boolean).map(fold);
    const named = pieces.length === 1 && isLonger(pieces[0], 1) && isUpper(segment);
    const terms = [];
    const joined = together(segment);
    const inner = strip(segment, "_");
    if (inner !== segment) terms.push(cut(bare(segment.replace(inner, () => joined)))); // __init__
    if (pieces.length > 1) {
      terms.push(this.#stemmed(joined));
      for (const part of segment.split(PARTS)) {
        if (PIECE.test(part)) terms.push(this.#stemmed(together(part)));
      }
    }
    for (const piece of pieces) terms.push(...this.#word(piece, named));
    return [...new Set(terms)];
  }

  /** @param {string} token */
  #spaceless(token) {
    return token.split(SPACELESS).flatMap((run, n) => {
      if (n % 2) return pairs(run);
      return tokens(strip(run, ".-'’:/@>")).flatMap((rest) => this.#termsOf(rest));
    });
  }

  /**
   * @param {string} folded
   * @param {boolean} named
   */
  #word(folded, named) {
    if (!folded || (this.#stopWords.has(folded) && !named)) return [];
    const forms = [folded, ...(NUMBERED.exec(folded) ?? []).slice(1)];
    if (!this.#asks && !ASCII.test(folded)) {
      const variants = [bare(folded), bare(translate(folded, SPELLED))];
      forms.push(...variants.filter((form) => !this.#stopWords.has(form)));
    }
    return [...new Set(forms.map((form) => this.#stemmed(form)))];
  }

  /** @param {string} folded */
  #stemmed(folded) {
    const word = cut(folded);
    return cut(bare(this.#stem(word) || word));
  }
}

/** @param {string} text */
function expressionsFor(text) {
  return ASCII.test(text) ? IN_ASCII : IN_UNICODE;
}

/**
 * @param {string} text
 * @returns {string[]}
 */
function tokens(text) {
  return text.match(expressionsFor(text).token) ?? [];
}

/** @param {string} run */
function pairs(run) {
  const points = [...run];
  if (points.length === 1) return points;
  return points.slice(1).map((point, n) => points[n] + point);
}

/** @param {string} segment */
function together(segment) {
  return fold(ALPHANUMERIC.test(segment) ? segment : segment.replace(GLUE, ""));
}

/**
 * Fold case.
 *
 * @param {string} text
 */
export function fold(text) {
  text = text.toLowerCase();
  if (ASCII.test(text)) return text;
  return text
    .replaceAll("ß", "ss")
    .replaceAll("ς", "σ")
    .replaceAll("i\u0307", "i")
    .replaceAll("’", "'");
}

/**
 * Remove accents from Latin and Greek letters of folded text.
 *
 * @param {string} folded
 */
function bare(folded) {
  if (ASCII.test(folded)) return folded;
  return translate(folded.normalize("NFD").replace(ACCENTS, ""), PLAIN_LETTERS).normalize("NFC");
}

/**
 * @param {string} text
 * @param {Record<string, string>} letters
 */
function translate(text, letters) {
  return text.replace(/[^\0-\x7f]/gu, (letter) => letters[letter] ?? letter);
}

/** @param {string} text */
function normal(text) {
  return ASCII.test(text) ? text : text.replace(UNSEEN, "").normalize("NFKC");
}

/** @param {string} text */
function isUpper(text) {
  return UPPER.test(text) && !NOT_UPPER.test(text);
}

/**
 * Whether a text has more code points than a limit.
 *
 * @param {string} text
 * @param {number} points
 */
function isLonger(text, points) {
  return text.length > points && [...text.slice(0, 2 * points + 1)].length > points;
}

/**
 * The first 64 code points of a term.
 *
 * @param {string} term
 */
function cut(term) {
  if (term.length <= MAX_TERM_LENGTH) return term;
  return [...term.slice(0, 2 * MAX_TERM_LENGTH)].slice(0, MAX_TERM_LENGTH).join("");
}

/**
 * Remove characters from both ends of a text.
 *
 * @param {string} text
 * @param {string} characters
 */
function strip(text, characters) {
  let [start, stop] = [0, text.length];
  while (start < stop && characters.includes(text[start])) start++;
  while (start < stop && characters.includes(text[stop - 1])) stop--;
  return text.slice(start, stop);
}

/**
 * @param {string} match
 * @param {...(string | undefined | number)} groups
 */
function inBackticks(match, ...groups) {
  const word = String(groups.find((group) => group !== undefined));
  return `${match.slice(0, match.length - word.length)}\`${word}\``;
}
