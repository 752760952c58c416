// Splits a text into the tokens of MiniLM, as Python's tokenizers library: BERT's normalisation (no
// case, no accents, separate ideographs) and WordPiece.

const [UNKNOWN, FIRST, LAST] = [100, 101, 102];
const MAX_WORD_LENGTH = 100; // characters; a longer word is unknown
const MARKS = /\[(?:PAD|UNK|CLS|SEP|MASK)\]/g; // special tokens, literal in a text
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\ufffd]/gu; // without Cn, which depends on the Unicode version
const IDEOGRAPH =
  /[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/gu;
const WORDS = /[$+<=>^`|~\p{P}]|[^\s$+<=>^`|~\p{P}]+/gu;

export class Tokenizer {
  /** @type {Map<string, number>} */
  #numbers;

  /** @param {string[]} vocabulary  tokens in order */
  constructor(vocabulary) {
    this.#numbers = new Map(vocabulary.map((token, number) => [token, number]));
  }

  /**
   * The numbers of a text's tokens, with the special ones at the start and end.
   *
   * @param {string} text
   * @param {number} longest  maximum of numbers
   */
  numbers(text, longest) {
    const found = [FIRST];
    let at = 0;
    for (const mark of text.matchAll(MARKS)) {
      this.#read(text.slice(at, mark.index), found);
      found.push(Number(this.#numbers.get(mark[0])));
      at = Number(mark.index) + mark[0].length;
    }
    this.#read(text.slice(at), found);
    return [...found.slice(0, longest - 1), LAST];
  }

  /** @param {string} text @param {number[]} found */
  #read(text, found) {
    for (const word of normalised(text).match(WORDS) ?? []) found.push(...this.#pieces(word));
  }

  /**
   * Repeatedly take the longest token at the start of the rest of a word.
   *
   * @param {string} word
   */
  #pieces(word) {
    const letters = [...word];
    if (letters.length > MAX_WORD_LENGTH) return [UNKNOWN];
    const pieces = [];
    for (let start = 0; start < letters.length;) {
      let end = letters.length;
      let number;
      for (; end > start && number === undefined; end--) {
        const piece = letters.slice(start, end).join("");
        number = this.#numbers.get(start ? `##${piece}` : piece);
      }
      if (number === undefined) return [UNKNOWN];
      pieces.push(number);
      start = end + 1;
    }
    return pieces;
  }
}

/** @param {string} text */
function normalised(text) {
  const cleaned = text
    .replace(/[\t\n\r]/g, " ")
    .replace(UNSEEN, "")
    .replace(IDEOGRAPH, " $& ");
  const plain = cleaned.normalize("NFD").replace(/\p{Mn}/gu, "");
  // by character, since Python ignores the neighbours of a sigma
  return Array.from(plain, (letter) => letter.toLowerCase()).join("");
}
