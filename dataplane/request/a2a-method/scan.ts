const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Bytes of JSON outside of texts: whitespace, punctuation, numbers, `true`, `false`, `null`. */
const PLAIN = new Uint8Array(256)
for (const char of ' \t\r\n{}[]:,+-.0123456789eEtrufalsn') PLAIN[char.charCodeAt(0)] = 1
/** Whitespace. */
const SPACE = new Uint8Array(256)
for (const char of ' \t\r\n') SPACE[char.charCodeAt(0)] = 1
/** Names of members and methods are not longer, in bytes of JSON. */
const MAX_NAME = 512

/** What is known of a body. */
export interface Scanned {
  /** The member `method` of the object, if it is a text. */
  readonly method: string | undefined
  /** The object has the member `jsonrpc`. */
  readonly isRpc: boolean
  /** Why the method cannot be known, for the client; undefined: it is known, or the object has none. */
  readonly problem: string | undefined
}

/**
 * Finds the method of a JSON-RPC request in a body of any length, without holding it. Bodies that parsers read differently have a problem:
 * members that differ in case only, doubled members, comments, encodings other than UTF-8. It does not check JSON otherwise.
 */
export class MethodScanner {
  #depth = 0
  #problem: string | undefined
  #hasEnded = false
  /** Bytes of the text that is read, at depth 1 only; undefined: outside of a text. */
  #text: number[] | undefined
  #isInText = false
  #isEscaped = false
  /** The last text was the name of a member. */
  #key: string | undefined
  #isValue = false
  #method: string | undefined
  #hasMethod = false
  #isRpc = false
  #hasStarted = false

  push(chunk: Buffer): void {
    let at = 0
    while (at < chunk.length && this.#problem === undefined) at = this.#isInText ? this.#readText(chunk, at) : this.#readPlain(chunk, at)
  }

  /** The state so far, or that of the whole body if `isComplete`. */
  result(isComplete: boolean): Scanned {
    const problem = this.#problem ?? (isComplete && this.#hasStarted && !this.#hasEnded ? 'the body is not JSON' : undefined)
    return { method: problem === undefined ? this.#method : undefined, isRpc: this.#isRpc, problem }
  }

  #readPlain(chunk: Buffer, start: number): number {
    for (let at = start; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0
      if (byte === QUOTE) {
        this.#isInText = true
        this.#text = this.#depth === 1 ? [] : undefined
        if (this.#depth === 0) this.#problem = 'the body is not a JSON object'
        return at + 1
      }
      if (PLAIN[byte] === 0) {
        this.#problem = 'the body is not JSON in UTF-8'
        return chunk.length
      }
      if (this.#depth > 1) {
        if (byte === 0x7b || byte === 0x5b) this.#depth++
        else if (byte === 0x7d || byte === 0x5d) this.#depth--
      } else if (SPACE[byte] === 0) this.#readTop(byte)
      if (this.#problem !== undefined) return chunk.length
    }
    return chunk.length
  }

  /** A byte outside of texts and of nested values. */
  #readTop(byte: number): void {
    if (this.#depth === 0) {
      if (byte !== 0x7b || this.#hasEnded) this.#problem = byte === 0x5b ? 'batches are not part of A2A' : 'the body is not a JSON object'
      this.#depth = 1
      this.#hasStarted = true
      return
    }
    switch (byte) {
      case 0x7b:
      case 0x5b:
        this.#checkValue()
        this.#depth++
        break
      case 0x7d:
        this.#depth = 0
        this.#hasEnded = true
        break
      case 0x5d:
        this.#problem = 'the body is not JSON'
        break
      case 0x2c:
        this.#isValue = false
        this.#key = undefined
        break
      case 0x3a:
        this.#isValue = true
        break
      default:
        this.#checkValue()
    }
  }

  #checkValue(): void {
    if (this.#key === 'method') this.#problem = 'the method is not a string'
  }

  #readText(chunk: Buffer, start: number): number {
    const text = this.#text
    for (let at = start; at < chunk.length; at++) {
      const byte = chunk[at] ?? 0
      if (this.#isEscaped) this.#isEscaped = false
      else if (byte === BACKSLASH) this.#isEscaped = true
      else if (byte === QUOTE) {
        this.#isInText = false
        if (text !== undefined) this.#endText(text)
        return at + 1
      }
      if (text !== undefined && text.length <= MAX_NAME) text.push(byte)
    }
    return chunk.length
  }

  #endText(bytes: readonly number[]): void {
    if (this.#isValue && this.#key !== 'method') return
    const text = bytes.length > MAX_NAME ? undefined : decode(bytes)
    if (this.#isValue) {
      this.#method = text
      if (text === undefined) this.#problem = 'the method is not a valid string'
      return
    }
    this.#key = text
    const name = text?.toLowerCase()
    if (name === 'jsonrpc') this.#isRpc = true
    if (name !== 'method') return
    if (text !== 'method' || this.#hasMethod) this.#problem = 'the body has several members "method", or one with capital letters'
    this.#hasMethod = true
  }
}

/** The text between quotes; undefined if it is not valid. */
function decode(bytes: readonly number[]): string | undefined {
  try {
    return String(JSON.parse(`"${Buffer.from(bytes).toString()}"`))
  } catch {
    return undefined
  }
}

/** Reads a body that is in memory. */
export function scanMethod(bytes: Buffer): Scanned {
  const scanner = new MethodScanner()
  scanner.push(bytes)
  return scanner.result(true)
}
