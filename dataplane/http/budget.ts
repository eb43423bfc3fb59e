/** The bytes of message bodies that the process buffers, and their limit (traffic.md §10, maxHeldBytes). */
export class BodyBudget {
  /** Limit of `heldBytes`. */
  limitBytes: number = Infinity
  #heldBytes = 0
  #rejected = 0
  #shared: SharedHeldBytes | undefined

  /** With several workers, those of all. */
  get heldBytes(): number {
    return this.#shared?.heldBytes ?? this.#heldBytes
  }

  /** Number of reservations that were rejected. */
  get rejected(): number {
    return this.#shared?.rejected ?? this.#rejected
  }

  /** Counts the bytes together with those of other threads. Call it before the first reservation. */
  share(shared: SharedHeldBytes): void {
    this.#shared = shared
  }

  /** Reserves bytes; false, and counts a rejection, if they exceed the limit. */
  reserve(bytes: number): boolean {
    this.add(bytes)
    if (this.heldBytes <= this.limitBytes) return true
    this.add(-bytes)
    if (this.#shared === undefined) this.#rejected++
    else this.#shared.reject()
    return false
  }

  /** Changes `heldBytes`, whatever the limit. */
  add(bytes: number): void {
    if (this.#shared === undefined) this.#heldBytes += bytes
    else this.#shared.add(bytes)
  }
}

/** 64-bit words per thread: held bytes, rejections. */
const THREAD_WORDS = 2

/** The held bytes of several threads, each of which has a place of its own: that of a thread that ended can be cleared. */
export class SharedHeldBytes {
  readonly #words: BigInt64Array<SharedArrayBuffer>
  readonly #own: number

  /** @param thread index of the thread, below the number that the memory is for */
  constructor(memory: SharedArrayBuffer, thread: number) {
    this.#words = new BigInt64Array(memory)
    this.#own = thread * THREAD_WORDS
  }

  static allocate(threads: number): SharedArrayBuffer {
    return new SharedArrayBuffer(threads * THREAD_WORDS * BigInt64Array.BYTES_PER_ELEMENT)
  }

  get heldBytes(): number {
    return this.#sum(0)
  }

  get rejected(): number {
    return this.#sum(1)
  }

  add(bytes: number): void {
    Atomics.add(this.#words, this.#own, BigInt(bytes))
  }

  reject(): void {
    Atomics.add(this.#words, this.#own + 1, 1n)
  }

  /** Releases the bytes of a thread that ended; its rejections stay counted. */
  clear(thread: number): void {
    Atomics.store(this.#words, thread * THREAD_WORDS, 0n)
  }

  #sum(offset: number): number {
    let sum = 0n
    for (let index = offset; index < this.#words.length; index += THREAD_WORDS) sum += Atomics.load(this.#words, index)
    return Number(sum)
  }
}

/** The budget of this process. */
export const bodyBudget: BodyBudget = new BodyBudget()

/**
 * The bytes that one owner, such as an exchange, buffers. The owner releases them all at its end; later reservations are checked
 * against the budget but not counted, because nothing would release them.
 */
export class BodyHold {
  readonly #budget: BodyBudget
  readonly #createError: () => Error
  #bytes = 0
  #isReleased = false

  /** `createError` creates the error of rejected reservations. */
  constructor(createError: () => Error, budget: BodyBudget = bodyBudget) {
    this.#budget = budget
    this.#createError = createError
  }

  get isReleased(): boolean {
    return this.#isReleased
  }

  /** Reserves bytes. Returns an error if they exceed the budget; nothing is reserved then. */
  reserve(bytes: number): Error | undefined {
    if (!this.#budget.reserve(bytes)) return this.#createError()
    if (this.#isReleased) this.#budget.add(-bytes)
    else this.#bytes += bytes
    return undefined
  }

  /** Gives back bytes that are no longer buffered. */
  free(bytes: number): void {
    const freed = Math.min(bytes, this.#bytes)
    this.#bytes -= freed
    if (freed > 0) this.#budget.add(-freed)
  }

  /** Changes the reservation to `bytes`. Returns an error, and changes nothing, if they exceed the budget. */
  resize(bytes: number): Error | undefined {
    if (bytes > this.#bytes) return this.reserve(bytes - this.#bytes)
    this.free(this.#bytes - bytes)
    return undefined
  }

  /** Gives back all bytes. Idempotent. */
  release(): void {
    this.#isReleased = true
    this.free(this.#bytes)
  }
}
