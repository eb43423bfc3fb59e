import { ConnectionError, ENHANCE_YOUR_CALM } from './frames.ts'

/** An encoded header section beyond this multiple of its limit ends the connection; a smaller one is decoded and rejected alone. */
const MAX_BLOCK_FACTOR = 4
/** Limit of the frames of a header section (CVE-2024-27316 and others of 2024). */
const MAX_FRAGMENTS = 128

/** A header section that is received in several frames. */
export class HeaderBlock {
  readonly id: number
  readonly endStream: boolean
  readonly #maxBytes: number
  readonly #fragments: Buffer[] = []
  #bytes = 0

  /** `maxHeaderList`: limit of the decoded section. */
  constructor(id: number, endStream: boolean, maxHeaderList: number) {
    this.id = id
    this.endStream = endStream
    this.#maxBytes = maxHeaderList * MAX_BLOCK_FACTOR
  }

  /** Adds a fragment. Throws ConnectionError if there are too many, or too many bytes. */
  add(fragment: Buffer): void {
    this.#fragments.push(fragment)
    this.#bytes += fragment.length
    if (this.#bytes > this.#maxBytes || this.#fragments.length > MAX_FRAGMENTS) throw new ConnectionError(ENHANCE_YOUR_CALM, 'header section is too large')
  }

  join(): Buffer {
    return Buffer.concat(this.#fragments, this.#bytes)
  }
}
