import { ProxyError } from '../exchange/error.ts'
import type { Exchange } from '../exchange/exchange.ts'
import { bodyHold, readHeldBody } from '../exchange/held.ts'
import { BodyTooLargeError, BufferBody, type Body } from '../http/body.ts'
import { pathOf, type ResponseHead } from '../http/message.ts'
import { ObservedBody } from '../http/observe.ts'
import { setLogField } from '../telemetry/access-log/access-log.ts'
import { setProtocol } from '../telemetry/outcome.ts'
import { agentBaseOf, CardError, rewriteCard, type AgentPlace } from './card.ts'
import { isRecord } from './json.ts'
import { isCardMethod, methodOfPath } from './methods.ts'
import { outcomeFields } from './outcome.ts'

/** Limit of an agent card, bytes: parsed and written in some milliseconds. */
const MAX_CARD_BYTES = 256 * 1024
/** Larger bodies are forwarded without being read for the log. */
const MAX_READ_BYTES = 64 * 1024
const CARD_PATH = /\/\.well-known\/agent(-card)?\.json$/
/** The card must arrive whole. */
const CONDITIONS = ['range', 'if-range', 'if-none-match', 'if-modified-since']
/** Headers of a response that are those of the unchanged body. */
const BODY_HEADERS = ['content-length', 'etag', 'digest', 'content-digest', 'repr-digest', 'content-md5', 'accept-ranges', 'last-modified']

/** A request to an A2A agent (mcp.md §14). */
export class A2aCall {
  readonly #exchange: Exchange
  /** Set if the response is a card. */
  #place: AgentPlace | undefined
  #method: string | undefined

  /** Prepares the request, whose target is that for the upstream. */
  constructor(exchange: Exchange) {
    this.#exchange = exchange
    setProtocol(exchange, 'a2a')
    const { request } = exchange
    const path = pathOf(request.target)
    const upstreamBase = request.method === 'GET' || request.method === 'HEAD' ? agentBaseOf(path) : undefined
    if (upstreamBase !== undefined) {
      this.#place = this.#placeOf(upstreamBase, agentBaseOf(pathOf(exchange.receivedTarget)) ?? '')
      for (const name of CONDITIONS) request.headers.remove(name)
    }
    // Cards and results are read.
    if (upstreamBase !== undefined || request.method === 'POST') request.headers.remove('accept-encoding')
    this.#setMethod(upstreamBase !== undefined && CARD_PATH.test(path) ? 'GetAgentCard' : methodOfPath(request.method, path))
    if (request.method === 'POST' && this.#method === undefined && request.body !== undefined) request.body = this.#readRequest(request.body)
  }

  #setMethod(method: string | undefined): void {
    if (method === undefined) return
    this.#method = method
    setLogField(this.#exchange, 'a2a.method', method)
  }

  #placeOf(upstreamBase: string, base: string): AgentPlace {
    const { request, connection, receivedAuthority } = this.#exchange
    const forwarded = request.headers.get('x-forwarded-proto')
    const scheme = forwarded === 'http' || forwarded === 'https' ? forwarded : connection.tls === undefined ? 'http' : 'https'
    return { origin: `${scheme}://${receivedAuthority}`, base, upstreamBase }
  }

  /** Reads the method of a JSON-RPC request while it is forwarded. */
  #readRequest(body: Body): Body {
    return this.#observe(body, (message) => {
      if (!isRecord(message) || typeof message['method'] !== 'string') return
      this.#setMethod(message['method'].slice(0, 128))
    })
  }

  /** The response for the client. Rejects with a ProxyError if it is a card that cannot be rewritten. */
  async finish(response: ResponseHead): Promise<ResponseHead> {
    const { body, headers, status } = response
    if (body === undefined || status < 200 || !isJson(headers.get('content-type'))) {
      if (this.#place !== undefined && response.status === 200) this.#removeBodyHeaders(response)
      return response
    }
    if (this.#place === undefined && isCardMethod(this.#method))
      this.#place = this.#placeOf(...basesOf(pathOf(this.#exchange.request.target), pathOf(this.#exchange.receivedTarget)))
    if (this.#place === undefined || status !== 200) return { ...response, body: this.#observe(body, (message) => this.#log(message)) }
    return this.#rewrite(response, body, this.#place)
  }

  async #rewrite(response: ResponseHead, body: Body, place: AgentPlace): Promise<ResponseHead> {
    if ((response.headers.get('content-encoding') ?? 'identity') !== 'identity') throw unusable('it is compressed, although the gateway did not accept that')
    try {
      const { bytes } = await readHeldBody(this.#exchange, body, MAX_CARD_BYTES)
      const message = JSON.parse(bytes.toString()) as unknown
      const isRpc = isRecord(message) && message['jsonrpc'] !== undefined
      if (isRpc) this.#log(message)
      if (isRpc && message['result'] === undefined) return { ...response, body: new BufferBody(bytes) }
      const text = JSON.stringify(isRpc ? { ...message, result: rewriteCard(message['result'], place) } : rewriteCard(message, place))
      this.#removeBodyHeaders(response)
      return { ...response, body: new BufferBody(text) }
    } catch (error) {
      if (error instanceof ProxyError) throw error
      if (error instanceof BodyTooLargeError) throw unusable(`it is larger than ${MAX_CARD_BYTES} bytes`)
      if (error instanceof CardError || error instanceof SyntaxError || error instanceof RangeError)
        throw unusable(error instanceof CardError ? error.message : 'it is not JSON')
      throw error
    }
  }

  #removeBodyHeaders({ headers }: ResponseHead): void {
    for (const name of BODY_HEADERS) headers.remove(name)
  }

  #log(message: unknown): void {
    for (const [name, value] of Object.entries(outcomeFields(message))) if (value !== undefined) setLogField(this.#exchange, name as 'a2a.method', value)
  }

  /** Calls `read` with the JSON of a small body at its end. The body is forwarded unchanged. */
  #observe(body: Body, read: (message: unknown) => void): Body {
    const hold = bodyHold(this.#exchange)
    let chunks: Buffer[] | undefined = (body.length ?? 0) > MAX_READ_BYTES ? undefined : []
    let size = 0
    return new ObservedBody(body, {
      onData(chunk) {
        size += chunk.length
        if (chunks === undefined) return
        if (size > MAX_READ_BYTES || hold.reserve(chunk.length) !== undefined) chunks = undefined
        else chunks.push(chunk)
      },
      onClose(error) {
        if (error !== undefined || chunks === undefined) return
        try {
          read(JSON.parse(Buffer.concat(chunks).toString()))
        } catch {
          // Not JSON: nothing to log.
        }
      },
    })
  }
}

const isJson = (type: string | undefined): boolean => type !== undefined && /^application\/(?:[^;\s]+\+)?json\s*(?:;|$)/i.test(type)
/** Two paths without the segments at their ends that are equal. */
function basesOf(upstream: string, received: string): [upstreamBase: string, base: string] {
  const [one, other] = [upstream.split('/'), received.split('/')]
  while (one.length > 1 && other.length > 1 && one.at(-1) === other.at(-1)) {
    one.pop()
    other.pop()
  }
  return [one.join('/'), other.join('/')]
}

const unusable = (why: string): ProxyError => new ProxyError('PROCESSING_FAILED', { detail: `the agent card cannot be rewritten: ${why}` })
