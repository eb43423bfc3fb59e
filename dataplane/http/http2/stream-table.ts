/** What a table stores. */
export interface Numbered {
  readonly id: number
}

const SMALLEST = 16

/**
 * The open streams of a connection by id. A hash table with linear probing, because a Map whose entries come and go leaves its old storage behind, and that
 * refers to the storage after it: once one has moved to V8's old generation, all finished streams follow until the next major collection.
 */
export class StreamTable<S extends Numbered> {
  size = 0
  #slots: (S | undefined)[] = Array.from({ length: SMALLEST })

  get(id: number): S | undefined {
    return this.#slots[this.#find(id)]
  }

  set(stream: S): void {
    if (2 * (this.size + 1) > this.#slots.length) this.#grow()
    const at = this.#find(stream.id)
    if (this.#slots[at] === undefined) this.size++
    this.#slots[at] = stream
  }

  delete(id: number): void {
    let hole = this.#find(id)
    if (this.#slots[hole] === undefined) return
    this.size--
    const mask = this.#slots.length - 1
    // Streams behind the hole move up, unless they are where their search starts or between it and the hole.
    for (let at = (hole + 1) & mask; ; at = (at + 1) & mask) {
      const stream = this.#slots[at]
      if (stream === undefined) break
      if (((at - this.#start(stream.id)) & mask) < ((at - hole) & mask)) continue
      this.#slots[hole] = stream
      hole = at
    }
    this.#slots[hole] = undefined
  }

  /** The streams that are open now, in no order. Streams may be deleted meanwhile. */
  values(): S[] {
    return this.#slots.filter((stream) => stream !== undefined)
  }

  /** Index of the stream with that id, or of the free slot where it belongs. */
  #find(id: number): number {
    const mask = this.#slots.length - 1
    let at = this.#start(id)
    for (let stream = this.#slots[at]; stream !== undefined && stream.id !== id; stream = this.#slots[at]) at = (at + 1) & mask
    return at
  }

  /** All ids of one side are odd or all are even. */
  #start(id: number): number {
    return (id >>> 1) & (this.#slots.length - 1)
  }

  #grow(): void {
    const streams = this.values()
    this.#slots = Array.from({ length: 2 * this.#slots.length })
    for (const stream of streams) this.#slots[this.#find(stream.id)] = stream
  }
}
