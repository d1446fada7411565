/** Binary searches in ascending arrays. */

/** The first index whose value is at least `value`. */
export function lowerBound(array: Float64Array, value: number, from = 0, to = array.length): number {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (array[middle] < value) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** The first index whose value is above `value`. */
export function upperBound(array: Float64Array, value: number, from = 0, to = array.length): number {
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (array[middle] <= value) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** As `upperBound`, quick where the answer lies shortly after `from` (the last answer of a sweep). */
export function gallop(array: Float64Array, value: number, from: number): number {
  let step = 1;
  let low = from;
  while (low + step < array.length && array[low + step] <= value) {
    low += step;
    step *= 2;
  }
  return upperBound(array, value, low, Math.min(array.length, low + step + 1));
}
