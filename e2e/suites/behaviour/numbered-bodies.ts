import { createServer, type Socket } from 'node:net'

/** Letters only: external processors of the harness return bodies in upper case. Longer than any read buffer, and not a multiple of one. */
const letters = Buffer.alloc(1_000_003)
let state = 1
for (let at = 0; at < letters.length; at++) {
  state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
  letters[at] = 65 + ((state >>> 16) % 26)
}
const startOf = (seed: number): number => (seed * 7919) % letters.length

/** `length` bytes of the body with number `seed` from its byte `from` on. Bodies with different numbers differ at almost every position. */
export function bytesOf(seed: number, from: number, length: number): Buffer {
  const parts: Buffer[] = []
  let at = (startOf(seed) + from) % letters.length
  for (let left = length; left > 0;) {
    const part = letters.subarray(at, Math.min(letters.length, at + left))
    parts.push(part)
    left -= part.length
    at = 0
  }
  return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)
}

/** Compares a body with the one of its number, while it arrives. */
export class BodyCheck {
  readonly #seed: number
  #length = 0
  /** Index of the first chunk boundary before a wrong byte; undefined if all were right. */
  #wrongAt: number | undefined

  constructor(seed: number) {
    this.#seed = seed
  }

  push(chunk: Buffer): void {
    if (!chunk.equals(bytesOf(this.#seed, this.#length, chunk.length))) this.#wrongAt ??= this.#length
    this.#length += chunk.length
  }

  /** `<length> right`, or where the first wrong chunk begins. */
  get result(): string {
    return this.#wrongAt === undefined ? `${this.#length} right` : `wrong after ${this.#wrongAt} of ${this.#length}`
  }
}

export type BodyFraming = 'length' | 'chunked' | 'close'

/** Path of a request for a body. The upstream rejects the first request of each body on a path with `/twice` with 503 and a large body. */
export const pathOf = (route: string, framing: BodyFraming, size: number, seed: number): string => `/${route}/${framing}/${size}/${seed}`

/** Serves numbered bodies over HTTP/1.1, in pieces of varying sizes, as fast as they are read. */
export async function startNumberedBodies(port: number): Promise<{ close(): void }> {
  const failed = new Set<string>()
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    let pending = ''
    let wake: (() => void) | undefined
    const drained = (): Promise<void> => new Promise((resolve) => (socket.destroyed ? resolve() : (wake = resolve)))
    socket.on('drain', () => wake?.()).on('close', () => wake?.())
    let last = Promise.resolve()
    socket.on('data', (chunk) => {
      pending += chunk.toString('latin1')
      for (let end = pending.indexOf('\r\n\r\n'); end !== -1; end = pending.indexOf('\r\n\r\n')) {
        const path = pending.split(' ', 2)[1] ?? ''
        pending = pending.slice(end + 4)
        last = last.then(() => serve(socket, path, failed, drained)).catch(() => void socket.destroy())
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return {
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

async function serve(socket: Socket, path: string, failed: Set<string>, drained: () => Promise<void>): Promise<void> {
  const [, route, framing, size, seed] = path.split('/')
  const isRejected = route === 'twice' && !failed.has(path)
  failed.add(path)
  const length = Number(size)
  const framed = { length: `content-length: ${length}`, chunked: 'transfer-encoding: chunked', close: 'connection: close' }[framing ?? ''] ?? ''
  socket.write(`HTTP/1.1 ${isRejected ? '503 Rejected' : '200 OK'}\r\n${framed}\r\n\r\n`)
  for (let at = 0, turn = Number(seed); at < length; turn++) {
    const piece = Math.min(length - at, 1 + ((turn * 48_271) % 150_000))
    const bytes = bytesOf(Number(seed), at, piece)
    at += piece
    const isFull = framing === 'chunked' ? writeChunk(socket, bytes) : !socket.write(bytes)
    if (isFull) await drained()
  }
  if (framing === 'chunked') socket.write('0\r\n\r\n')
  if (framing === 'close') socket.end()
}

function writeChunk(socket: Socket, bytes: Buffer): boolean {
  socket.cork()
  socket.write(`${bytes.length.toString(16)}\r\n`)
  socket.write(bytes)
  const hasRoom = socket.write('\r\n')
  socket.uncork()
  return !hasRoom
}
