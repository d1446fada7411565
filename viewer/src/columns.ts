/** Reads the deflated integer columns that the crate writes (see `columns.rs` there). */

/** The columns of a packed table, undecoded: each is a run of LEB128 integers. */
export async function unpack(base64: string): Promise<Uint8Array[]> {
  const deflated = fromBase64(base64);
  if (deflated.length === 0) return [];
  return split(new Uint8Array(await inflated(deflated).arrayBuffer()));
}

/** A deflated text. */
export function inflate(base64: string): Promise<string> {
  return inflated(fromBase64(base64)).text();
}

function inflated(deflated: Uint8Array<ArrayBuffer>): Response {
  return new Response(new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate-raw")));
}

/** Cuts the inflated bytes into columns: per column its length and its bytes. */
export function split(flat: Uint8Array): Uint8Array[] {
  const columns: Uint8Array[] = [];
  let at = 0;
  while (at < flat.length) {
    let length = 0;
    let factor = 1;
    for (;;) {
      const byte = flat[at++];
      length += (byte & 0x7f) * factor;
      if (byte < 0x80) break;
      factor *= 128;
    }
    columns.push(flat.subarray(at, at + length));
    at += length;
  }
  return columns;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/**
 * Plain values. Doubles hold whole numbers up to 2^53 exactly: 104 days of nanoseconds. A larger value (the
 * "no job" number) comes out rounded, which is why it is compared with `>= NO_JOB`.
 */
export function values(column: Uint8Array, rows: number): Float64Array {
  const out = new Float64Array(rows);
  let at = 0;
  for (let row = 0; row < rows; row++) {
    let byte = column[at++];
    if (byte < 0x80) {
      out[row] = byte;
      continue;
    }
    let value = byte & 0x7f;
    let factor = 128;
    do {
      byte = column[at++];
      value += (byte & 0x7f) * factor;
      factor *= 128;
    } while (byte >= 0x80);
    out[row] = value;
  }
  return out;
}

/** Values stored as folded differences ("zigzag") to the one before. */
export function sums(column: Uint8Array, rows: number): Float64Array {
  const out = values(column, rows);
  let last = 0;
  for (let row = 0; row < rows; row++) {
    const folded = out[row];
    last += folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2;
    out[row] = last;
  }
  return out;
}

/** Small codes. */
export function bytes(column: Uint8Array, rows: number): Uint16Array {
  return Uint16Array.from(values(column, rows));
}
