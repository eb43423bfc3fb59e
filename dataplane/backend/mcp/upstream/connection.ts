import { createBodyHold } from '../../../request/exchange/held.ts'
import { readBody } from '../../../http/body.ts'
import { hostOf, portOf } from '../../../http/message.ts'
import { authorityFor } from '../../../net/upstream/destination.ts'
import { UpstreamError } from '../../../net/upstream/types.ts'
import type { HeaderList } from '../../../http/headers.ts'
import { headersFor } from '../message/headers.ts'
import { MODERN_VERSION } from '../message/modern.ts'
import { readEvents, type EventSource } from '../sse/source.ts'
import type { Target } from '../target/target.ts'
import { callTarget, messageLimit, type CallContext, type MessageLabel } from './call.ts'
import { Correlator } from './correlator.ts'
import { isRepeatable, type Connection, type LinkAnswer } from './link.ts'

/** Timeout for the `endpoint` event. */
const ENDPOINT_MS = 10_000
const MAX_ACK_BYTES = 64 * 1024

/** Servers of this transport do not know the revision without sessions, so its header is not sent to them. */
const versionFor = (received: HeaderList): null | undefined => (received.get('mcp-protocol-version') === MODERN_VERSION ? null : undefined)

/** A live connection to a target that speaks HTTP+SSE (protocol revision 2024-11-05): one event stream and a POST for each message. */
export class SseConnection implements Connection {
  readonly #target: Target
  readonly #events: EventSource
  readonly #messages = new Correlator()
  /** `host:port` of the instance that holds the stream. POSTs must go to the same instance. */
  readonly #instance: string
  readonly #names: readonly string[]
  #path = ''

  private constructor(context: CallContext, target: Target, events: EventSource, instance: string) {
    this.#target = target
    this.#events = events
    this.#instance = instance
    this.#names = namesOf(context, target, instance)
  }

  /** Opens the stream and waits for its `endpoint` event. The stream stays open after the request of `context`. */
  static async open(context: CallContext, target: Target): Promise<{ connection: SseConnection } | { refused: LinkAnswer }> {
    const { exchange } = context
    const detached = { ...context, exchange: exchange.fork(exchange.request) }
    // Until the response head arrives, the call is bound to the client's request.
    detached.exchange.deadlineAtMs = exchange.deadlineAtMs
    let isOpen = false
    exchange.onAbort((reason) => {
      if (!isOpen) detached.exchange.abort(reason)
    })
    const headers = headersFor(exchange.request.headers, {
      sessionId: undefined,
      version: versionFor(exchange.request.headers),
      accept: 'text/event-stream',
      hasBody: false,
    })
    const { response, endpoint } = await callTarget(detached, target, { method: 'GET', headers })
    isOpen = true
    const isStream = response.status === 200 && (response.headers.get('content-type') ?? '').toLowerCase().startsWith('text/event-stream')
    if (!isStream || response.body === undefined) return { refused: { kind: 'refused', response } }
    const connection = new SseConnection(context, target, readEvents(response.body, messageLimit(context), createBodyHold()), endpoint)
    await connection.#start(context)
    return { connection }
  }

  get isClosed(): boolean {
    return this.#messages.isClosed
  }

  #start({ exchange }: CallContext): Promise<void> {
    return new Promise((resolve, reject) => {
      const fail = (error: Error): void => {
        clearTimeout(timer)
        reject(error)
        this.#messages.fail(error)
      }
      const timer = setTimeout(
        () => fail(new UpstreamError('connect-timeout', `${this.#target.name} sent no endpoint event within ${ENDPOINT_MS} ms`)),
        ENDPOINT_MS,
      )
      exchange.onAbort((reason) => {
        if (this.#path === '') fail(reason)
      })
      this.#events.start({
        onEvent: (event) => {
          if (event.event !== 'endpoint') return this.#messages.dispatch(event)
          if (this.#path !== '') return
          const path = resolveEndpoint(this.#target.path, this.#names, event.data)
          if (path === undefined)
            return fail(
              new UpstreamError('protocol', `${this.#target.name} sent an endpoint on another origin, which is not followed: ${event.data.slice(0, 200)}`),
            )
          this.#path = path
          clearTimeout(timer)
          resolve()
        },
        onEnd: () => fail(new UpstreamError('reset', `${this.#target.name} ended its event stream`)),
        onError: fail,
      })
    })
  }

  /** Sends a message. The response to a request arrives on the stream with the same id. */
  async post(context: CallContext, text: string, label: MessageLabel): Promise<LinkAnswer> {
    if (this.isClosed) throw new UpstreamError('reset', `the event stream of ${this.#target.name} has ended`)
    const { method, name, id } = label
    const answer = id === undefined || method === undefined ? undefined : this.#messages.expect(id, label)
    try {
      const received = context.exchange.request.headers
      const headers = headersFor(received, { sessionId: undefined, version: versionFor(received), method, name, hasBody: true })
      const { response } = await callTarget(context, this.#target, {
        method: 'POST',
        path: this.#path,
        headers,
        body: Buffer.from(text),
        message: { method, name },
        endpoint: this.#instance,
        isRepeatable: isRepeatable(method),
      })
      if (response.status < 200 || response.status > 299) {
        answer?.cancel()
        return { kind: 'refused', response }
      }
      await readBody(response.body, MAX_ACK_BYTES).catch(() => undefined)
    } catch (error) {
      answer?.cancel()
      throw error
    }
    if (answer === undefined) return { kind: 'accepted' }
    context.exchange.onAbort(() => answer.cancel())
    return { kind: 'events', events: answer }
  }

  listen(): EventSource {
    return this.#messages.listen()
  }

  close(): void {
    this.#events.cancel()
    this.#messages.fail(new UpstreamError('cancelled', 'the session has ended'))
  }
}

/**
 * Path and query that an `endpoint` event names: an absolute URL, `?query`, or a path (mcp.md §5.3). Undefined if it is on another
 * origin than the stream, because credentials are for the target only. `own` are the names of the stream's origin (`host:port`).
 */
export function resolveEndpoint(path: string, own: readonly string[], data: string): string | undefined {
  const text = data.trim()
  // URL parsers drop some characters or read them as a slash, which would change the URL.
  if (text === '' || /[^\x21-\x5b\x5d-\x7e]/.test(text)) return undefined
  if (text.startsWith('?')) return `${path.split('?')[0] ?? ''}${text}`
  if (!/^[a-zA-Z][a-zA-Z0-9+.-]*:/.test(text) && !text.startsWith('//')) return text.startsWith('/') ? text : `/${text}`
  const url = URL.parse(text, 'http://invalid')
  if (url === null || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') return undefined
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : url.port
  return own.includes(`${url.hostname}:${port}`) ? `${url.pathname}${url.search}` : undefined
}

/** Names of the instance that holds the stream: by authority and by address. */
function namesOf({ exchange }: CallContext, { destination }: Target, instance: string): string[] {
  const authority = authorityFor(exchange, destination).toLowerCase()
  const port = portOf(instance) ?? 80
  const defaultPort = destination.settings.tls === undefined ? 80 : 443
  return [instance, `${hostOf(authority)}:${portOf(authority) ?? defaultPort}`, `${hostOf(authority)}:${port}`]
}
