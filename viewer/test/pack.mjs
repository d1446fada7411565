/** Packs columns as the crate `horolog-report` does, for lanes that tests make. */
import { deflateRawSync } from "node:zlib";

/** The writer's side, in big integers: what `columns.rs` does. */
export function leb(values) {
  const out = [];
  for (let value of values.map(BigInt)) {
    for (; value >= 128n; value >>= 7n) out.push(Number(value & 127n) | 128);
    out.push(Number(value));
  }
  return out;
}

export function differences(values) {
  let last = 0n;
  const folded = values.map(BigInt).map((value) => {
    const difference = value - last;
    last = value;
    return difference >= 0n ? 2n * difference : -2n * difference - 1n;
  });
  return leb(folded);
}

export function packed(...parts) {
  const flat = parts.flatMap((part) => [...leb([part.length]), ...part]);
  return deflateRawSync(Uint8Array.from(flat)).toString("base64");
}

/** A lane's intervals: start, length, code, argument. */
export function packedIntervals(rows) {
  const column = (i) => rows.map((row) => row[i]);
  return [rows.length, packed(differences(column(0)), leb(column(1)), leb(column(2)), differences(column(3)))];
}

/** A lane's jobs: number, arrival, readiness after it, response, execution. */
export function packedJobs(rows) {
  const column = (i) => rows.map((row) => row[i]);
  return [rows.length, packed(differences(column(0)), differences(column(1)), leb(column(2)), leb(column(3).map((r) => r + 1)), leb(column(4)))];
}
