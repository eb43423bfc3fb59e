import { Buffer } from 'node:buffer'
import { crc32 } from 'node:zlib'

/** Records begin at multiples of it. */
const ALIGNMENT = 8
/** A record: its position (8 bytes), the length of its value (4), a checksum (4), its key (32), and its value. */
const LENGTH_AT = 8
const CHECKSUM_AT = 12
const KEY_AT = 16
const KEY_BYTES = 32
const HEAD_BYTES = KEY_AT + KEY_BYTES
/** Records that a bucket of the index refers to. */
const WAYS = 8
/** Bytes of a record on which the size of the index is based. */
const MEAN_BYTES = 1024
/** Attempts to reserve space that does not cross the end of the memory. */
const MAX_ATTEMPTS = 4
/** Words before the index: the position at which the next record begins. */
const PREFIX_WORDS = 1

/** Memory for values of `bytes` in all, a power of two. Pages that hold nothing use no memory. */
export function allocateRing(bytes: number): SharedArrayBuffer {
  return new SharedArrayBuffer((PREFIX_WORDS + slotsOf(bytes)) * ALIGNMENT + bytes)
}

const slotsOf = (bytes: number): number => Math.max(WAYS, bytes / MEAN_BYTES)

/** A value, and whether it will be overwritten soon. */
export interface RingValue {
  /** A copy. */
  readonly value: Buffer
  readonly isOld: boolean
}

/**
 * Values by key in shared memory. New values overwrite the oldest ones; any value may be missing at any time.
 *
 * There are no locks, because a thread may be terminated at any instruction. A writer first reserves its range of the ring, then writes, and publishes
 * the record last. A reader copies a record, and then checks that no writer has reserved its range since. A checksum detects the writer that was
 * paused while others filled the whole ring.
 */
export class SharedRing {
  readonly #words: BigUint64Array<SharedArrayBuffer>
  readonly #bytes: Uint8Array<SharedArrayBuffer>
  readonly #view: DataView<SharedArrayBuffer>
  readonly #size: number
  readonly #buckets: number

  /** @param bytes as for `allocateRing` */
  constructor(memory: SharedArrayBuffer, bytes: number) {
    this.#words = new BigUint64Array(memory, 0, PREFIX_WORDS + slotsOf(bytes))
    this.#bytes = new Uint8Array(memory, this.#words.byteLength, bytes)
    this.#view = new DataView(memory, this.#words.byteLength, bytes)
    this.#size = bytes
    this.#buckets = slotsOf(bytes) / WAYS
  }

  /** The value of a key of 32 bytes. */
  get(key: Buffer): RingValue | undefined {
    const first = this.#bucketOf(key)
    for (let way = 0; way < WAYS; way++) {
      const position = Atomics.load(this.#words, first + way)
      const found = position === 0n ? undefined : this.#read(position, key)
      if (found !== undefined) return found
    }
    return undefined
  }

  /** Sets the value of a key of 32 bytes. Values of more than a quarter of the memory are not stored. */
  set(key: Buffer, value: Uint8Array): void {
    const length = Math.ceil((HEAD_BYTES + value.length) / ALIGNMENT) * ALIGNMENT
    if (length > this.#size / 4) return
    const position = this.#reserve(length)
    if (position === undefined) return
    const at = this.#offsetOf(position)
    this.#view.setBigUint64(at, position, true)
    this.#view.setUint32(at + LENGTH_AT, value.length, true)
    this.#view.setUint32(at + CHECKSUM_AT, checksumOf(key, value), true)
    this.#bytes.set(key, at + KEY_AT)
    this.#bytes.set(value, at + HEAD_BYTES)
    Atomics.store(this.#words, this.#slotFor(key), position)
  }

  /** The position of a range of the ring. Positions grow for ever; 0 is none. */
  #reserve(length: number): bigint | undefined {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
      // Position 0 is at the end of a round, so that no record has it.
      const position = Atomics.add(this.#words, 0, BigInt(length)) + BigInt(this.#size)
      if (this.#offsetOf(position) + length <= this.#size) return position
    }
    return undefined
  }

  #read(position: bigint, key: Buffer): RingValue | undefined {
    if (!this.#isThere(position)) return undefined
    const at = this.#offsetOf(position)
    if (this.#view.getBigUint64(at, true) !== position) return undefined
    for (let byte = 0; byte < KEY_BYTES; byte++) if (this.#bytes[at + KEY_AT + byte] !== key[byte]) return undefined
    const length = this.#view.getUint32(at + LENGTH_AT, true)
    const checksum = this.#view.getUint32(at + CHECKSUM_AT, true)
    if (at + HEAD_BYTES + length > this.#size) return undefined
    const value = Buffer.from(this.#bytes.subarray(at + HEAD_BYTES, at + HEAD_BYTES + length))
    if (!this.#isThere(position) || checksumOf(key, value) !== checksum) return undefined
    return { value, isOld: this.#distanceOf(position) > this.#size / 2 }
  }

  /** Whether no writer has reserved the range of a record since. */
  #isThere(position: bigint): boolean {
    return this.#distanceOf(position) <= this.#size
  }

  /** Bytes that were reserved since the record began. */
  #distanceOf(position: bigint): number {
    return Number(Atomics.load(this.#words, 0) + BigInt(this.#size) - position)
  }

  /** The slot of a key: its own, or that of the oldest record of the bucket. */
  #slotFor(key: Buffer): number {
    const first = this.#bucketOf(key)
    let oldest = first
    for (let slot = first; slot < first + WAYS; slot++) {
      const position = Atomics.load(this.#words, slot)
      if (position !== 0n && this.#read(position, key) !== undefined) return slot
      if (position < Atomics.load(this.#words, oldest)) oldest = slot
    }
    return oldest
  }

  #bucketOf(key: Buffer): number {
    return PREFIX_WORDS + (key.readUInt32LE(0) % this.#buckets) * WAYS
  }

  #offsetOf(position: bigint): number {
    return Number(position % BigInt(this.#size))
  }
}

const checksumOf = (key: Buffer, value: Uint8Array): number => crc32(value, crc32(key))
