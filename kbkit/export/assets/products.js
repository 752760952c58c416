// Products of 16-bit rows with 8-bit matrices, eight numbers at a time. JavaScript has no such
// instructions, so a small WebAssembly program is assembled here.

const PAGE = 65_536; // bytes
const [I32, V128] = [0x7f, 0x7b];

// Numbers of the program's arguments and variables.
const [ROWS, MATRIX, INPUTS, OUTPUTS, NUMBER, RESULT] = [0, 1, 2, 3, 4, 5];
const [OUTPUT, ROW, X, W, END, PLACE, SUM] = [6, 7, 8, 9, 10, 11, 12];

/** @param {number} name */
const get = (name) => [0x20, name];
/** @param {number} name */
const set = (name) => [0x21, name];
/** @param {number} value */
const constant = (value) => [0x41, value];
const [ADD, SUBTRACT, SHIFT, BELOW] = [[0x6a], [0x6b], [0x74], [0x49]];
const STORE = [0x36, 2, 0];
const ZEROS = [0xfd, 0x0c, ...new Array(16).fill(0)];
const LOAD_8_OF_16_BITS = [0xfd, 0x00, 0, 0];
const LOAD_8_OF_8_BITS = [0xfd, 0x01, 0, 0];
const DOT = [0xfd, 0xba, 0x01];
const ADD_4 = [0xfd, 0xae, 0x01];
const AGAIN = [0x0d, 0];
/** @param {number} lane */
const taken = (lane) => [...get(SUM), 0xfd, 0x1b, lane];
/** @param {number[][]} steps */
const loop = (...steps) => [0x03, 0x40, ...steps.flat(), 0x0b];
/** @param {number} name @param {number[]} by */
const moved = (name, by) => [...get(name), ...by, ...ADD, ...set(name)];
/** @param {number} name */
const counted = (name) => [...get(name), ...constant(1), ...SUBTRACT, 0x22, name, ...AGAIN];

/** For each output and row: the dot product of the row and the output's row of the matrix. */
const PROGRAM = [
  ...[...get(OUTPUTS), ...set(OUTPUT)],
  ...loop(
    [...get(NUMBER), ...set(ROW), ...get(ROWS), ...set(X), ...get(RESULT), ...set(PLACE)],
    [...get(MATRIX), ...get(INPUTS), ...ADD, ...set(END)],
    loop(
      [...get(MATRIX), ...set(W), ...ZEROS, ...set(SUM)],
      loop(
        [...get(SUM), ...get(X), ...LOAD_8_OF_16_BITS, ...get(W), ...LOAD_8_OF_8_BITS],
        [...DOT, ...ADD_4, ...set(SUM)],
        moved(X, constant(16)),
        moved(W, constant(8)),
        [...get(W), ...get(END), ...BELOW, ...AGAIN],
      ),
      [...get(PLACE), ...taken(0), ...taken(1), ...ADD, ...taken(2), ...ADD, ...taken(3), ...ADD],
      STORE,
      moved(PLACE, [...get(OUTPUTS), ...constant(2), ...SHIFT]),
      counted(ROW),
    ),
    [...get(END), ...set(MATRIX)],
    moved(RESULT, constant(4)),
    counted(OUTPUT),
  ),
];

/** @param {number} value  below 16,384 */
const leb = (value) => (value < 128 ? [value] : [(value & 127) | 128, value >> 7]);
/** @param {number[][]} items */
const vector = (...items) => [...leb(items.length), ...items.flat()];
/** @param {number} kind @param {number[]} content */
const section = (kind, content) => [kind, ...leb(content.length), ...content];
const NAME = [1, 0x6b]; // "k"

function assembled() {
  const code = [3, 6, I32, 0, V128, 1, V128, ...PROGRAM, 0x0b]; // 12 integers, then the sum
  return new Uint8Array([
    ...[0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
    ...section(1, vector([0x60, ...vector(...new Array(6).fill([I32])), 0])),
    ...section(2, vector([...NAME, ...NAME, 2, 0, 1])), // imported memory
    ...section(3, vector([0])),
    ...section(7, vector([...NAME, 0, 0])),
    ...section(10, vector([...leb(code.length), ...code])),
  ]);
}

/** 8-bit matrices, and memory for their factors. */
export class Products {
  #memory;
  #multiply;
  #used = 0;

  /** @param {number} bytes  of all matrices and factors */
  constructor(bytes) {
    this.#memory = new WebAssembly.Memory({ initial: Math.ceil(bytes / PAGE) });
    const module = new WebAssembly.Module(assembled());
    const { exports } = new WebAssembly.Instance(module, { k: { k: this.#memory } });
    this.#multiply = /** @type {Function} */ (exports.k);
  }

  /**
   * Allocates memory.
   *
   * @param {number} bytes  a multiple of 16
   * @returns {number} start
   */
  room(bytes) {
    this.#used += bytes;
    return this.#used - bytes;
  }

  /** @param {Uint8Array} matrix */
  keep(matrix) {
    const place = this.room(matrix.length);
    new Uint8Array(this.#memory.buffer).set(matrix, place);
    return place;
  }

  /** @param {number} place @param {number} length */
  rows(place, length) {
    return new Int16Array(this.#memory.buffer, place, length);
  }

  /** @param {number} place @param {number} length */
  sums(place, length) {
    return new Int32Array(this.#memory.buffer, place, length);
  }

  /**
   * @param {number} rows  address of the rows
   * @param {number} number  of rows
   * @param {number} matrix  its address: a row for each output
   * @param {number} inputs  a multiple of 8
   * @param {number} outputs
   * @param {number} result  address of the sums: a row for each row
   */
  multiply(rows, number, matrix, inputs, outputs, result) {
    this.#multiply(rows, matrix, inputs, outputs, number, result);
  }
}
