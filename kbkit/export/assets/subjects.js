// The normal form of subjects' names; counterpart of kbkit/text/__init__.py, which describes
// it.

const LONGEST = 200; // characters of a normal form
const SHORT = 2; // letters of a word whose case matters
const UNSEEN = /[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu;
// eslint-disable-next-line no-control-regex -- what Python takes for spaces
const SPACES = /[\s\x1c-\x1f\x85]+/u;
const CALL = /\(\s*(?:\.\.\.|…)?\s*\)$/u;
const FLAG = /^--?(?=[\p{L}\p{N}_])/u;
const JOINT = /(?<=\S)(?:::|->|[./\\:@=#$%&?*[\]<>|])(?=\S)/u;
const SIGN = /^[$@%/~#_.]\S/u;
const CONSTANT = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$/u;
const HUMPS = /(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?:[a-rt-z]|s[a-z]))/gu;
const QUOTES = "`*\"'“”‘’«» ";
const ASCII = /^[\0-\x7f]*$/;
const NAME = /^[\p{ID_Start}_]\p{ID_Continue}*$/u;

/** @typedef {"domain" | "entity" | "problem" | "resolution" | "context"} Kind */

/**
 * Remove some characters from the end of a text.
 *
 * @param {string} text
 * @param {string} characters
 */
function trimmedEnd(text, characters) {
  const all = [...text];
  while (all.length && characters.includes(/** @type {string} */ (all.at(-1)))) all.pop();
  return all.join("");
}

/** @param {string} text */
function words(text) {
  return text.split(SPACES).filter(Boolean);
}

/** Whether all letters of a text that have a case are capitals, and there is one. @param {string} text */
function isUpper(text) {
  return /\p{Uppercase}/u.test(text) && !/[\p{Lowercase}\p{Lt}]/u.test(text);
}

/**
 * The normal form of a name.
 *
 * @param {Kind} kind
 * @param {string} name
 * @param {Set<string>} stopWords  English ones
 */
function subjectKey(kind, name, stopWords) {
  const seen = name.replace(UNSEEN, "").normalize("NFKC");
  let text = trimmedEnd(words(seen).join(" "), QUOTES);
  while (text && QUOTES.includes(text[0])) text = text.slice(1);
  text = [...text].slice(0, LONGEST).join("");
  if (kind === "entity") return entity(text, stopWords);
  text = trimmedEnd(text, " \t.,:;!?");
  return kind === "domain" ? phrase(text) : text.toLowerCase();
}

/**
 * @param {string} name
 * @param {Set<string>} stopWords
 */
function entity(name, stopWords) {
  let text = name;
  for (let bare = ""; (bare = text.replace(CALL, "").trimEnd()) !== text;) text = bare;
  text = trimmedEnd(text, " ,;!?") || text;
  if (text.length > 1 && /[.:]$/u.test(text) && !text.endsWith("..")) {
    text = trimmedEnd(text, ".:") || text;
  }
  return !text.includes(" ") && isIdentifier(text, stopWords) ? text : phrase(text);
}

/**
 * @param {string} text
 * @param {Set<string>} stopWords
 */
function isIdentifier(text, stopWords) {
  if (FLAG.test(text) || SIGN.test(text) || JOINT.test(text) || CONSTANT.test(text)) return true;
  const common = [...text].length <= SHORT || stopWords.has(text.toLowerCase());
  return common && /^\p{Uppercase}/u.test(text);
}

/** @param {string} text */
function phrase(text) {
  const apart = /[ -]/u.test(text);
  let parts = words(text.replace(/[_-]/gu, " "));
  if (!apart && parts.length === 1) {
    if (NAME.test(text)) parts = words(text.replace(HUMPS, " "));
    if (parts.length === 1) return singular(parts[0]);
  } else if (!apart) {
    parts = parts.flatMap((word) => words(word.replace(HUMPS, " ")));
  }
  if (apart && parts.length) parts.push(singular(/** @type {string} */ (parts.pop())));
  return parts.join(" ").toLowerCase() || text.toLowerCase();
}

/** @param {string} word */
function singular(word) {
  const low = word.toLowerCase();
  if (word.length > SHORT && word.endsWith("s") && isUpper(word.slice(0, -1))) {
    return low.slice(0, -1); // URLs, IDs
  }
  if (low.length <= 3 || isUpper(word) || !ASCII.test(low) || !low.endsWith("s")) return low;
  if (low.endsWith("ies") && low.length > 4) return `${low.slice(0, -3)}y`;
  if (/(?:sses|xes|zzes|ches|shes)$/u.test(low)) return low.slice(0, -2);
  return /(?:ss|us|is)$/u.test(low) ? low : low.slice(0, -1);
}

export { subjectKey };
