// Columns that grow as a run streams in.

export class Column {
  private room: Float64Array;
  length = 0;

  constructor(capacity = 256) {
    this.room = new Float64Array(capacity);
  }

  append(values: Float64Array | Uint32Array | Uint16Array): void {
    const needed = this.length + values.length;
    if (needed > this.room.length) {
      const larger = new Float64Array(Math.max(needed, 2 * this.room.length));
      larger.set(this.room.subarray(0, this.length));
      this.room = larger;
    }
    this.room.set(values, this.length);
    this.length = needed;
  }

  get values(): Float64Array {
    return this.room.subarray(0, this.length);
  }

  at(index: number): number {
    return this.room[index]!;
  }

  set(index: number, value: number): void {
    this.room[index] = value;
  }

  /** Makes it as long as this, with a value in what is new. */
  extend(length: number, value: number): void {
    if (length <= this.length) return;
    if (length > this.room.length) {
      const larger = new Float64Array(Math.max(length, 2 * this.room.length));
      larger.set(this.room.subarray(0, this.length));
      this.room = larger;
    }
    this.room.fill(value, this.length, length);
    this.length = length;
  }
}

/** The index of the last value that is at most `limit` in an ascending column; -1 if there is none. */
export function lastAt(values: Float64Array, limit: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! <= limit) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
