/** Bytes of the buffer that all connections share. */
const SHARED_BYTES = 64 * 1024
/** Bytes of a buffer for one large body. Twice the size gains a tenth, and pins twice the memory per slow client. */
const LARGE_BYTES = 256 * 1024
/** Limit of large buffers that are attached to connections. Connections beyond it read into the shared buffer. */
const MAX_ATTACHED = 128
/** Limit of large buffers that are kept for later bodies. */
const MAX_FREE = 32

/**
 * The shared buffer, for heads and small bodies: any connection of the thread overwrites it with its next read, so nothing in it may be
 * kept after the read was handled. A new buffer for each read, which Node allocates by default, keeps the garbage collector busy.
 */
export const sharedBuffer: Buffer = Buffer.allocUnsafeSlow(SHARED_BYTES)

/** Buffers for large bodies, each attached to one connection at a time. */
export class LargeBuffers {
  readonly #free: Buffer[] = []
  #attached = 0

  /** A buffer for the exclusive use of one connection; undefined at the limit. */
  attach(): Buffer | undefined {
    if (this.#attached >= MAX_ATTACHED) return undefined
    this.#attached++
    return this.#free.pop() ?? Buffer.allocUnsafeSlow(LARGE_BYTES)
  }

  /** Detaches a buffer. Reused for another connection unless `isHeld`: a pending write still reads it. */
  detach(buffer: Buffer, isHeld: boolean): void {
    this.#attached--
    if (!isHeld && this.#free.length < MAX_FREE) this.#free.push(buffer)
  }
}

/** The large buffers of this thread. */
export const largeBuffers: LargeBuffers = new LargeBuffers()
