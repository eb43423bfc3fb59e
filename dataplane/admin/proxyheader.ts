import { createServer, type Server, type Socket } from 'node:net'
import type { Server as HttpServer } from 'node:http'

const V2_SIGNATURE = Buffer.from([0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a])
/** Longest version 1 line, CRLF included (PROXY protocol specification, 2.1). */
const V1_MAX = 107
/** Version 2: fixed part, largest address block (UNIX, 216) and some room for TLVs. */
const V2_MAX = 16 + 216 + 512
const HEADER_TIMEOUT_MS = 5000

/**
 * Length of the PROXY protocol header that `bytes` starts with: 0 when there is none, 'more' when that cannot be told yet, 'bad' when
 * it is broken.
 */
export function measureProxyHeader(bytes: Buffer): number | 'more' | 'bad' {
  if (V2_SIGNATURE.subarray(0, bytes.length).equals(bytes.subarray(0, V2_SIGNATURE.length))) {
    if (bytes.length < 16) return 'more'
    const length = 16 + bytes.readUInt16BE(14)
    if ((bytes[12] ?? 0) >> 4 !== 2 || length > V2_MAX) return 'bad'
    return bytes.length < length ? 'more' : length
  }
  const word = Buffer.from('PROXY ')
  if (!word.subarray(0, bytes.length).equals(bytes.subarray(0, word.length))) return 0
  const end = bytes.subarray(0, V1_MAX).indexOf('\r\n')
  if (end !== -1) return end + 2
  return bytes.length < V1_MAX ? 'more' : 'bad'
}

/**
 * A server in front of `http` that skips an optional PROXY protocol header: load balancers send it to every port alike, health checks
 * included. The addresses in it are of no interest here.
 */
export function createProxyHeaderServer(http: HttpServer): Server {
  // It never listens itself, yet its time limits and its list of connections start with this event.
  http.emit('listening')
  return createServer({ noDelay: true }, (socket) => {
    socket.setTimeout(HEADER_TIMEOUT_MS, () => socket.destroy())
    socket.on('error', () => socket.destroy())
    readHeader(socket, Buffer.alloc(0), (rest) => {
      socket.setTimeout(0)
      socket.removeAllListeners('timeout')
      if (rest.length > 0) socket.unshift(rest)
      http.emit('connection', socket)
      socket.resume()
    })
  })
}

function readHeader(socket: Socket, read: Buffer, done: (rest: Buffer) => void): void {
  socket.once('data', (chunk: Buffer) => {
    const bytes = Buffer.concat([read, chunk])
    const length = measureProxyHeader(bytes)
    if (length === 'bad') socket.destroy()
    else if (length === 'more') readHeader(socket, bytes, done)
    else {
      socket.pause()
      done(bytes.subarray(length))
    }
  })
}
