// Decodes the numbers in shards; kbkit/export/index_packing.py encodes them.

/**
 * The bytes of base64.
 *
 * @param {string} text
 */
function bytes(text) {
  const binary = atob(text);
  const data = new Uint8Array(binary.length);
  for (let i = 0; i < data.length; i++) data[i] = binary.charCodeAt(i);
  return data;
}

/**
 * Non-negative numbers from varints in base64.
 *
 * @param {string} text
 */
export function varints(text) {
  const data = bytes(text);
  let count = 0;
  for (const byte of data) if (byte < 0x80) count++;
  const numbers = new Int32Array(count);
  let place = 0;
  let shift = 0;
  for (const byte of data) {
    numbers[place] |= (byte & 0x7f) << shift;
    if (byte < 0x80) {
      place++;
      shift = 0;
    } else {
      shift += 7;
    }
  }
  return numbers;
}

/**
 * Values from -7 to 7, two per byte in base64, low half first.
 *
 * @param {string} text
 */
export function nibbles(text) {
  const data = bytes(text);
  const values = new Int8Array(2 * data.length);
  for (let i = 0; i < data.length; i++) {
    values[2 * i] = (data[i] & 0xf) - 8;
    values[2 * i + 1] = (data[i] >> 4) - 8;
  }
  return values;
}

/**
 * Values from -127 to 127, one per byte in base64.
 *
 * @param {string} text
 */
export function octets(text) {
  return new Int8Array(bytes(text).buffer);
}

/**
 * @param {Int8Array} steps
 * @param {number} scale
 */
export function scaled(steps, scale) {
  return Float64Array.from(steps, (step) => step * scale);
}
