import { createHash, timingSafeEqual } from 'node:crypto'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { respondWithError } from '../../request/exchange/compose.ts'
import { releaseBodies } from '../../request/exchange/held.ts'
import type { Connection, Exchange, OnFinish, OnRequest } from '../../request/exchange/exchange.ts'
import { defineSlot } from '../../request/exchange/slot.ts'
import type { RequestRelay } from '../../gateway/binds.ts'
import type { OnGone, WorkerMessages } from '../../backend/mcp/session/sharing.ts'
import { queryOf, type HttpVersion, type RequestHead, type ResponseHead } from '../../http/message.ts'
import { requestHeadLimits } from '../../http/syntax.ts'
import { serveHttp1, type Http1Server } from '../../net/server/http1/connection.ts'
import { createHttp1Pool } from '../../net/upstream/http1/pool.ts'
import type { UpstreamCall } from '../../net/upstream/types.ts'
import { messageRequest, receiveMessage } from './message.ts'
import type { SharedSessions } from './sessions.ts'

const CONNECT_MS = 5000
const PREAMBLE_MS = 5000
/** A client certificate is a part of the preamble. */
const MAX_PREAMBLE_BYTES = 256 * 1024
const ownConnection: Connection = { id: 0, bind: '', localAddress: '', localPort: 0, remoteAddress: '', remotePort: 0, tls: undefined, listener: undefined }
/** The other worker has checked the head against the limits of its listener. */
const limits = { ...requestHeadLimits, maxHeaders: 100_000, maxHeadBytes: 16 * 1024 * 1024 }

/** First line of a connection between workers. */
interface Preamble {
  readonly secret: string
  readonly connection: Connection
  readonly version: HttpVersion
  /** The connection has a message about something that the worker holds, not a request of a client. */
  readonly isMessage?: true
}

export interface SessionRelayOptions {
  /** Number of this thread. */
  readonly number: number
  readonly sessions: SharedSessions
  /** Known to the workers of this data plane only: 32 bytes in hexadecimal digits. */
  readonly secret: string
  /** Whether the config has sessions that a worker holds. */
  isUsed(): boolean
}

const relayed = defineSlot<true>('relayed', { isForked: false })

/**
 * Sends requests of MCP sessions to the worker that holds their live connections: the event stream of an HTTP+SSE client, or connections to HTTP+SSE
 * servers. The request is sent as the client sent it, before any policy, with the attributes of the client's connection; the other worker handles and
 * records it.
 */
export class SessionRelay implements RequestRelay, WorkerMessages {
  readonly #options: SessionRelayOptions
  readonly #open = new Set<Http1Server>()
  #server: Server | undefined
  #handler: ((text: string) => Promise<ResponseHead>) | undefined

  constructor(options: SessionRelayOptions) {
    this.#options = options
  }

  /** Accepts requests of other workers. */
  async listen(handlers: { readonly onRequest: OnRequest; readonly onFinish: OnFinish }): Promise<void> {
    const server = createServer((socket) => this.#accept(socket, handlers))
    this.#server = server
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(this.#pathOf(this.#options.number), resolve))
    server.unref()
  }

  /** Sends the request to the worker that holds its session; undefined: this one handles it. */
  forward(exchange: Exchange): Promise<void> | undefined {
    const { number, sessions, isUsed } = this.#options
    if (!isUsed()) return undefined
    const id = sessionIdOf(exchange)
    const holder = id === undefined ? 0 : sessions.holderOf(id)
    return holder === 0 || holder === number ? undefined : this.#send(exchange, holder)
  }

  send(id: string, text: string, onGone: OnGone): Promise<ResponseHead> | undefined {
    const holder = this.#options.sessions.holderOf(id)
    if (holder === 0 || holder === this.#options.number) return undefined
    const request = messageRequest(text)
    const call = this.#call(holder, { secret: this.#options.secret, connection: ownConnection, version: request.version, isMessage: true }, request)
    onGone((reason) => call.cancel(reason))
    return call.response
  }

  handle(handler: (text: string) => Promise<ResponseHead>): void {
    this.#handler = handler
  }

  isRelayed(exchange: Exchange): boolean {
    return relayed.get(exchange) === true
  }

  close(): void {
    this.#server?.close()
    for (const connection of this.#open) connection.close(true)
  }

  async #send(exchange: Exchange, holder: number): Promise<void> {
    const { connection, request } = exchange
    const call = this.#call(holder, { secret: this.#options.secret, connection, version: request.version }, request)
    exchange.onAbort((reason) => call.cancel(reason))
    try {
      exchange.response = await call.response
      relayed.set(exchange, true)
    } catch (error) {
      respondWithError(exchange, error)
    }
  }

  #call(holder: number, preamble: Preamble, request: RequestHead): UpstreamCall {
    const pool = createHttp1Pool(
      { host: 'worker', port: holder, tls: undefined, keepAlive: undefined },
      {
        connector: (onReady) => {
          const socket = connect({ path: this.#pathOf(holder) }, () => {
            socket.write(`${JSON.stringify(preamble)}\n`)
            onReady()
          })
          return socket
        },
      },
    )
    return pool.call(request, { connectMs: CONNECT_MS })
  }

  #accept(socket: Socket, { onRequest, onFinish }: { readonly onRequest: OnRequest; readonly onFinish: OnFinish }): void {
    let bytes: Buffer = Buffer.alloc(0)
    const timer = setTimeout(() => socket.destroy(), PREAMBLE_MS).unref()
    socket.on('error', () => undefined)
    socket.once('close', () => clearTimeout(timer))
    const onData = (chunk: Buffer): void => {
      bytes = Buffer.concat([bytes, chunk])
      const end = bytes.indexOf(10)
      if (end === -1) {
        if (bytes.length > MAX_PREAMBLE_BYTES) socket.destroy()
        return
      }
      socket.removeListener('data', onData)
      clearTimeout(timer)
      const preamble = this.#verify(bytes.subarray(0, end).toString())
      if (preamble === undefined) return void socket.destroy()
      const { connection, version, isMessage } = preamble
      const own: { server?: Http1Server } = {}
      own.server = serveHttp1(socket, {
        connection,
        initial: bytes.subarray(end + 1),
        limits,
        onRequest: (exchange) => {
          exchange.request.version = version
          return isMessage === true ? receiveMessage(exchange, this.#handler) : onRequest(exchange)
        },
        onFinish: isMessage === true ? releaseBodies : onFinish,
        onClose: () => this.#forget(own.server),
      })
      if (!socket.destroyed) this.#open.add(own.server)
    }
    socket.on('data', onData)
  }

  #verify(line: string): Preamble | undefined {
    try {
      const preamble = JSON.parse(line) as Preamble
      const [given, expected] = [Buffer.from(preamble.secret), Buffer.from(this.#options.secret)]
      return given.length === expected.length && timingSafeEqual(given, expected) ? preamble : undefined
    } catch {
      return undefined
    }
  }

  #forget(connection: Http1Server | undefined): void {
    if (connection !== undefined) this.#open.delete(connection)
  }

  /** An abstract socket on Linux, which needs no file system. Its name is public, hence the secret. */
  #pathOf(number: number): string {
    const name = `proxy-worker-${process.pid}-${number}-${createHash('sha256').update(this.#options.secret).digest('hex').slice(0, 16)}`
    return process.platform === 'linux' ? `\0${name}` : `${tmpdir()}/${name}`
  }
}

/** The session that a request names: in its header, or with HTTP+SSE in its query. */
function sessionIdOf({ request }: Exchange): string | undefined {
  const { headers, target, method } = request
  const id = headers.get('mcp-session-id')
  if (id !== undefined || method !== 'POST' || !target.includes('sessionId=')) return id
  return new URLSearchParams(queryOf(target)).get('sessionId') ?? undefined
}
