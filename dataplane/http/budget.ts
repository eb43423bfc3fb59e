/** The bytes of message bodies that the process buffers, and their limit (traffic.md §10, maxHeldBytes). */
export class BodyBudget {
  /** Limit of `heldBytes`. */
  limitBytes: number = Infinity
  heldBytes: number = 0
  /** Number of reservations that were rejected. */
  rejected: number = 0

  /** Whether `bytes` more can be reserved; counts a rejection if not. */
  admits(bytes: number): boolean {
    if (this.heldBytes + bytes <= this.limitBytes) return true
    this.rejected++
    return false
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
    if (!this.#budget.admits(bytes)) return this.#createError()
    if (this.#isReleased) return undefined
    this.#bytes += bytes
    this.#budget.heldBytes += bytes
    return undefined
  }

  /** Gives back bytes that are no longer buffered. */
  free(bytes: number): void {
    const freed = Math.min(bytes, this.#bytes)
    this.#bytes -= freed
    this.#budget.heldBytes -= freed
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
