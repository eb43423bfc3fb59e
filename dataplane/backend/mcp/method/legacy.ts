import { randomUUID } from 'node:crypto'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { readHeldBody } from '../../../request/exchange/held.ts'
import { HeaderList } from '../../../http/headers.ts'
import { queryOf, type ResponseHead } from '../../../http/message.ts'
import { CancelledError, McpFailure } from '../message/failure.ts'
import { failureText } from '../run/gather.ts'
import type { EventOutput, Reply } from '../message/reply.ts'
import { errorText, INTERNAL_ERROR, isRequest, type RpcMessage } from '../message/rpc.ts'
import type { SessionSharing } from '../session/sharing.ts'
import { logIdOf, type Session } from '../session/sessions.ts'
import { EventStream, type StreamFeeder } from '../sse/body.ts'
import { MAX_EVENT_CHARS } from '../sse/parser.ts'

/** A client that speaks HTTP+SSE. Its stream is its session and exists in this process only (mcp.md §6). */
export interface LegacyClient {
  readonly session: Session
  readonly stream: EventStream
  /** Current sources of the stream. */
  readonly feeders: Set<StreamFeeder>
}

const PARAMETER = 'sessionId'

/** The connected HTTP+SSE clients of one backend, by session id. */
export class LegacyClients {
  readonly #clients = new Map<string, LegacyClient>()
  readonly #sharing: SessionSharing | undefined

  constructor(sharing?: SessionSharing) {
    this.#sharing = sharing
  }

  get size(): number {
    return this.#clients.size
  }

  /** The sessions of the clients. */
  *list(): Iterable<Session> {
    for (const { session } of this.#clients.values()) yield session
  }

  /** The response to GET: a stream whose first event names the URL for messages. `onClose` is called when the client disconnects. */
  open(exchange: Exchange, session: Session, onClose: () => void): ResponseHead {
    const id = randomUUID()
    const feeders = new Set<StreamFeeder>()
    const stream = new EventStream({
      onPressure: (isBehind) => {
        for (const feeder of feeders) feeder.onPressure?.(isBehind)
      },
      onClose: () => {
        this.#clients.delete(id)
        this.#sharing?.release(id)
        for (const feeder of feeders) feeder.onClose?.()
        onClose()
      },
    })
    session.logId = logIdOf(id)
    this.#clients.set(id, { session, stream, feeders })
    this.#sharing?.claim(id)
    const { receivedTarget: target } = exchange
    stream.write({ event: 'endpoint', data: `${target}${target.includes('?') ? '&' : '?'}${PARAMETER}=${id}` })
    exchange.deadlineAtMs = undefined
    return { status: 200, headers: new HeaderList(['content-type', 'text/event-stream', 'cache-control', 'no-cache']), body: stream, upgraded: undefined }
  }

  /** The client that sent a POST. Throws a McpFailure if there is none, or if it belongs to another user than `principal`. */
  find({ request }: Exchange, principal: string | undefined): LegacyClient {
    const id = new URLSearchParams(queryOf(request.target)).get(PARAMETER)
    if (id === null) throw McpFailure.text(422, `the query parameter ${PARAMETER} is required: post to the URL of the endpoint event`)
    const client = this.#clients.get(id)
    if (client === undefined || client.session.principal !== principal) throw McpFailure.text(404, 'session not found')
    return client
  }

  close(): void {
    for (const { stream } of this.#clients.values()) stream.end()
  }
}

/** Writes a reply to the client's stream. `onDone` is called when the reply is complete or the client disconnected. Never rejects. */
export async function deliver({ stream, feeders }: LegacyClient, message: RpcMessage, replied: Promise<Reply>, onDone: () => void): Promise<void> {
  try {
    const reply = await replied
    if (reply.kind === 'stream') return feed(stream, feeders, reply.feed, onDone)
    await write(stream, message, reply)
  } catch (error) {
    if (isRequest(message) && !(error instanceof CancelledError)) stream.send(failureText(message, error))
  }
  onDone()
}

async function write(stream: EventStream, message: RpcMessage, reply: Exclude<Reply, { kind: 'stream' }>): Promise<void> {
  switch (reply.kind) {
    case 'accepted':
      return
    case 'relay': {
      reply.response.body?.cancel()
      if (isRequest(message)) stream.send(errorText(message.id, INTERNAL_ERROR, `the upstream answered ${reply.response.status}`))
      return
    }
    case 'message':
      stream.send((await readHeldBody(undefined, reply.body, MAX_EVENT_CHARS)).bytes.toString())
  }
}

/** Connects a source of messages to the stream, which stays open when the source ends. `onDone` is called when it ended or the client disconnected. */
export function feed(stream: EventStream, feeders: Set<StreamFeeder>, start: (out: EventOutput) => StreamFeeder, onDone?: () => void): void {
  let isOver = false
  let feeder: StreamFeeder | undefined
  const finish = (): void => {
    isOver = true
    if (feeder !== undefined) feeders.delete(feeder)
    onDone?.()
  }
  const out: EventOutput = {
    // Event ids are dropped. Parts of large events are not accepted, because other messages could come between them.
    isResumable: false,
    write: ({ data }) => {
      if (data !== '') stream.send(data)
    },
    send: (text) => stream.send(text),
    end: finish,
    fail: finish,
  }
  const source = start(out)
  if (isOver) return
  feeder = {
    onPressure: (isBehind) => source.onPressure?.(isBehind),
    onClose() {
      source.onClose?.()
      onDone?.()
    },
  }
  if (stream.isClosed) feeder.onClose?.()
  else feeders.add(feeder)
}
