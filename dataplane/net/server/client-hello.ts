/** The parts of a TLS ClientHello that select a listener. */
export interface ClientHello {
  /** Lower case; undefined if the client sent none. */
  readonly sni: string | undefined
  readonly alpn: readonly string[]
}

/** Limit of the handshake message, which is about 2 KiB with a post-quantum key share. */
const MAX_HELLO_BYTES = 16_384

const HANDSHAKE_RECORD = 22
const CLIENT_HELLO_MESSAGE = 1
const SERVER_NAME_EXTENSION = 0
const ALPN_EXTENSION = 16

/**
 * Parses the ClientHello at the start of a connection (RFC 8446 §4.1.2, §5.1), in one or several records.
 * 'incomplete': more bytes are needed. 'invalid': it is not a ClientHello, or exceeds the limit.
 */
export function parseClientHello(bytes: Buffer): ClientHello | 'incomplete' | 'invalid' {
  const message = joinRecords(bytes)
  if (typeof message === 'string') return message
  try {
    return readHello(new Reader(message))
  } catch (error) {
    if (error instanceof OutOfBytes) return 'invalid'
    throw error
  }
}

/** The handshake message without record headers. */
function joinRecords(bytes: Buffer): Buffer | 'incomplete' | 'invalid' {
  const fragments: Buffer[] = []
  let size = 0
  let needed = 4
  for (let at = 0; ;) {
    if (at < bytes.length && bytes[at] !== HANDSHAKE_RECORD) return 'invalid'
    if (at + 1 < bytes.length && bytes[at + 1] !== 3) return 'invalid'
    if (bytes.length < at + 5) return 'incomplete'
    const length = bytes.readUInt16BE(at + 3)
    // Empty handshake records are forbidden, and a client could send them endlessly.
    if (length === 0 || length > MAX_HELLO_BYTES) return 'invalid'
    const fragment = bytes.subarray(at + 5, at + 5 + length)
    fragments.push(fragment)
    size += fragment.length
    if (needed === 4 && size >= 4) {
      const start = fragments.length === 1 ? fragment : Buffer.concat(fragments)
      if (start[0] !== CLIENT_HELLO_MESSAGE) return 'invalid'
      needed = 4 + start.readUIntBE(1, 3)
      if (needed > MAX_HELLO_BYTES) return 'invalid'
    }
    if (needed > 4 && size >= needed) return (fragments.length === 1 ? fragment : Buffer.concat(fragments)).subarray(0, needed)
    if (fragment.length < length) return 'incomplete'
    at += 5 + length
  }
}

class OutOfBytes extends Error {}

/** Throws OutOfBytes at the end of its bytes. */
class Reader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length
  }

  number(width: 1 | 2 | 3): number {
    return this.take(width).readUIntBE(0, width)
  }

  take(length: number): Buffer {
    const end = this.#at + length
    if (end > this.#bytes.length) throw new OutOfBytes()
    const part = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return part
  }

  /** A vector preceded by its length. */
  vector(width: 1 | 2): Reader {
    return new Reader(this.take(this.number(width)))
  }

  text(width: 1 | 2): string {
    return this.take(this.number(width)).toString('latin1')
  }
}

function readHello(hello: Reader): ClientHello | 'invalid' {
  // Message header, legacy version, random, session id, cipher suites, compression methods.
  hello.take(4 + 2 + 32)
  hello.vector(1)
  hello.vector(2)
  hello.vector(1)
  let sni: string | undefined
  let alpn: string[] = []
  if (hello.isAtEnd) return { sni, alpn }
  const extensions = hello.vector(2)
  while (!extensions.isAtEnd) {
    const type = extensions.number(2)
    const content = extensions.vector(2)
    if (type === SERVER_NAME_EXTENSION) {
      if (sni !== undefined) return 'invalid'
      sni = readServerName(content)
      if (sni === undefined) return 'invalid'
    } else if (type === ALPN_EXTENSION) {
      alpn = []
      for (const names = content.vector(2); !names.isAtEnd;) alpn.push(names.text(1))
    }
  }
  return { sni, alpn }
}

/** The host name (RFC 6066 §3); undefined if it is malformed. */
function readServerName(content: Reader): string | undefined {
  for (const names = content.vector(2); !names.isAtEnd;) {
    const type = names.number(1)
    const name = names.text(2)
    if (type === 0) return /^[0-9A-Za-z._-]{1,255}$/.test(name) ? name.toLowerCase() : undefined
  }
  return undefined
}
