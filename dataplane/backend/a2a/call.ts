import { isJsonObject as isRecord, JsonLimitError, parseJson } from '#api/json/index.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { bodyHold, readHeldBody } from '../../request/exchange/held.ts'
import { BodyTooLargeError, BufferBody, type Body } from '../../http/body.ts'
import { CodingError, contentCoding, decodeBody, describeNewBody } from '../../http/coding.ts'
import { variables } from '../../request/exchange/variables.ts'
import { pathOf, type ResponseHead } from '../../http/message.ts'
import { ObservedBody } from '../../http/observe.ts'
import { setLogField } from '../../observe/telemetry/access-log/access-log.ts'
import type { Registry } from '../../observe/telemetry/metrics/registry.ts'
import { setProtocol } from '../../observe/telemetry/outcome.ts'
import type { Agent } from './agent.ts'
import { CardError, cardPathOf, resemblesCard, rewriteCard, type AgentPlace } from './card.ts'
import { isCardMethod, methodOfPath } from '../../request/a2a-method/path.ts'
import { MethodScanner } from '../../request/a2a-method/scan.ts'
import { countResponse } from './metrics.ts'
import { outcomeFields } from './outcome.ts'

/** Limit of an agent card, bytes: parsed and written in some milliseconds. */
const MAX_CARD_BYTES = 256 * 1024
/** Larger responses are forwarded without being read for the log. */
const MAX_READ_BYTES = 64 * 1024
/** The card must arrive whole. */
const CONDITIONS = ['range', 'if-range', 'if-none-match', 'if-modified-since']
/** Headers of a response that are those of the unchanged body. */
const BODY_HEADERS = ['content-length', 'etag', 'digest', 'content-digest', 'repr-digest', 'content-md5', 'accept-ranges', 'last-modified']

/** A response that is a card, or can be one. */
interface Expected {
  readonly place: AgentPlace
  /** False: the content decides. */
  readonly isCertain: boolean
}

/** A request to an A2A agent (mcp.md §14). */
export class A2aCall {
  readonly #exchange: Exchange
  readonly #registry: Registry | undefined
  readonly #agent: Agent | undefined
  /** Set if the path is that of a card. */
  readonly #expected: Expected | undefined
  /** Reads the request. */
  readonly #scanner: MethodScanner | undefined
  #isScanned = false
  #method: string | undefined
  #outcome: 'success' | 'error' | undefined
  /** The response is counted at its end. */
  #isObserved = false

  /** Prepares the request, whose target is that for the upstream. Throws a ProxyError for a card over gRPC. */
  constructor(exchange: Exchange, registry?: Registry, agent?: Agent) {
    this.#agent = agent
    this.#exchange = exchange
    this.#registry = registry
    setProtocol(exchange, 'a2a')
    const { request } = exchange
    const path = pathOf(request.target)
    const byPath = methodOfPath(request.method, path)
    if (byPath?.isGrpc === true && isCardMethod(byPath.method)) throw new ProxyError('A2A_GRPC_CARD')
    this.#setMethod(byPath?.method)
    if (request.method === 'GET' || request.method === 'HEAD') {
      this.#expected = this.#expectationOf(path)
      if (this.#expected !== undefined) for (const name of [...CONDITIONS, 'accept-encoding']) request.headers.remove(name)
    } else if (request.method === 'POST') {
      // Results are read.
      request.headers.remove('accept-encoding')
      if (byPath?.isGrpc !== true && request.body !== undefined) {
        this.#scanner = new MethodScanner()
        request.body = this.#scan(request.body, this.#scanner)
      }
    }
  }

  #setMethod(method: string | undefined): void {
    if (method === undefined) return
    this.#method = method.slice(0, 128)
    setLogField(this.#exchange, 'a2a.method', this.#method)
    variables.a2a.set(this.#exchange, { method: this.#method })
  }

  #expectationOf(path: string): Expected | undefined {
    const received = pathOf(this.#exchange.receivedTarget)
    const found = cardPathOf(received, this.#exchange.pathMatch)
    if (found !== undefined && path.endsWith(found.suffix)) return { place: this.#placeOf(...basesOf(path, received)), isCertain: found.isCertain }
    // The route rewrites the whole path.
    const upstream = cardPathOf(path, undefined)
    if (upstream !== undefined) return { place: this.#placeOf(path.slice(0, -upstream.suffix.length), ''), isCertain: upstream.isCertain }
    // Another spelling of the path.
    return isCardMethod(this.#method) ? { place: this.#placeOf(...basesOf(path, received)), isCertain: false } : undefined
  }

  #placeOf(upstreamBase: string, base: string): AgentPlace {
    const { request, connection, receivedAuthority } = this.#exchange
    const forwarded = request.headers.get('x-forwarded-proto')
    const scheme = forwarded === 'http' || forwarded === 'https' ? forwarded : connection.tls === undefined ? 'http' : 'https'
    return { origin: `${scheme}://${receivedAuthority}`, base, upstreamBase }
  }

  /** Reads the method of a JSON-RPC request while it is forwarded. */
  #scan(body: Body, scanner: MethodScanner): Body {
    return new ObservedBody(body, {
      onData: (chunk) => scanner.push(chunk),
      onClose: () => this.#endScan(scanner),
    })
  }

  #endScan(scanner: MethodScanner): void {
    if (this.#isScanned) return
    this.#isScanned = true
    this.#setMethod(scanner.result(true).method)
  }

  /** Whether the response is a card, from what was sent. An agent can respond before its request is closed, but not before it has its bytes. */
  #expect(): Expected | undefined {
    if (this.#scanner === undefined) return this.#expected
    const { method, problem } = this.#scanner.result(this.#isScanned)
    const isCertain = isCardMethod(method)
    if (!isCertain && problem === undefined && this.#isKnown(method)) return undefined
    return { place: this.#placeOf(...basesOf(pathOf(this.#exchange.request.target), pathOf(this.#exchange.receivedTarget))), isCertain }
  }

  #isKnown(method: string | undefined): boolean {
    return method !== undefined || this.#isScanned
  }

  /** The response for the client. Rejects with a ProxyError if it is a card that cannot be rewritten. */
  async finish(response: ResponseHead): Promise<ResponseHead> {
    try {
      const finished = await this.#finish(response)
      if (!this.#isObserved) this.#count(response.status)
      return finished
    } catch (error) {
      this.#count(500)
      throw error
    }
  }

  /** Counts the response by the outcome that its body has, or by its status. */
  #count(status: number): void {
    if (this.#registry !== undefined) countResponse(this.#registry, this.#exchange, this.#method, this.#outcome ?? (status < 400 ? 'success' : 'error'))
  }

  async #finish(response: ResponseHead): Promise<ResponseHead> {
    const { body, headers, status } = response
    const expected = status >= 200 && status < 300 ? this.#expect() : undefined
    const hasJson = isJson(headers.get('content-type'))
    if (body === undefined) {
      if (expected?.isCertain !== true) return response
      if (this.#exchange.request.method !== 'HEAD' && status === 200) throw unusable('the response is empty')
      this.#removeBodyHeaders(response)
      return response
    }
    if (expected !== undefined && (expected.isCertain || hasJson)) return this.#rewrite(response, body, expected)
    return status >= 200 && hasJson ? { ...response, body: this.#observe(body, status) } : response
  }

  async #rewrite(response: ResponseHead, body: Body, { place, isCertain }: Expected): Promise<ResponseHead> {
    try {
      const coding = contentCoding(response.headers)
      const { bytes, trailers } = await readHeldBody(this.#exchange, coding === undefined ? body : decodeBody(body, coding), MAX_CARD_BYTES)
      if (coding !== undefined) describeNewBody(response.headers)
      const message = parse(bytes, isCertain)
      const changed = await (this.#scanner === undefined ? this.#changeCard(message, place, isCertain) : this.#changeResult(message, place, isCertain))
      if (this.#agent?.isPersonal === true) response.headers.set('cache-control', 'private')
      if (changed === message) return { ...response, body: new BufferBody(bytes, trailers) }
      this.#removeBodyHeaders(response)
      return { ...response, body: new BufferBody(JSON.stringify(changed), trailers) }
    } catch (error) {
      if (error instanceof CodingError) {
        body.cancel()
        throw unusable(error.isUnknown ? `its content-encoding ${error.message} is not supported` : error.message)
      }
      if (error instanceof BodyTooLargeError) throw unusable(`it is larger than ${MAX_CARD_BYTES} bytes`)
      if (error instanceof CardError || error instanceof JsonLimitError) throw unusable(error.message)
      throw error
    }
  }

  /** The result of a JSON-RPC response. */
  async #changeResult(message: unknown, place: AgentPlace, isCertain: boolean): Promise<unknown> {
    this.#log(message)
    if (Array.isArray(message) && message.some((one) => isRecord(one) && resemblesCard(one['result']))) throw new CardError('it is in a batch')
    if (isRecord(message) && 'result' in message) {
      const result = await this.#changeCard(message['result'], place, isCertain)
      return result === message['result'] ? message : { ...message, result }
    }
    if (isCertain && !(isRecord(message) && isRecord(message['error']))) throw new CardError('the response has neither result nor error')
    return this.#changeCard(message, place, false)
  }

  /** The card for this client; the value itself if it is no card, or nothing changes. */
  async #changeCard(value: unknown, place: AgentPlace, isCertain: boolean): Promise<unknown> {
    if (!isCertain && !resemblesCard(value)) return value
    const card = rewriteCard(value, place)
    return this.#agent === undefined ? card : this.#agent.finishCard(card, this.#exchange)
  }

  #removeBodyHeaders({ headers }: ResponseHead): void {
    for (const name of BODY_HEADERS) headers.remove(name)
  }

  #log(message: unknown): void {
    const fields = outcomeFields(message)
    this.#outcome = fields['a2a.response.outcome'] === 'error' ? 'error' : 'success'
    for (const [name, value] of Object.entries(fields)) if (value !== undefined) setLogField(this.#exchange, name as 'a2a.method', value)
  }

  /** Reads the JSON of a small response for the log, while it is forwarded unchanged. */
  #observe(body: Body, status: number): Body {
    this.#isObserved = true
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
      onClose: (error) => {
        if (error === undefined && chunks !== undefined)
          try {
            this.#log(JSON.parse(Buffer.concat(chunks).toString()))
          } catch {
            // Not JSON: nothing to log.
          }
        this.#count(error === undefined ? status : 500)
      },
    })
  }
}

const isJson = (type: string | undefined): boolean => type !== undefined && /^application\/(?:[^;\s]+\+)?json\s*(?:;|$)/i.test(type)

/** The JSON of a card; undefined if it is none and the response can be something else. */
function parse(bytes: Buffer, isCertain: boolean): unknown {
  try {
    return parseJson(bytes.toString())
  } catch (error) {
    if (error instanceof JsonLimitError) throw error
    if (isCertain) throw new CardError('it is not JSON')
    return undefined
  }
}

/** Two paths without the segments at their ends that are equal. */
function basesOf(upstream: string, received: string): [upstreamBase: string, base: string] {
  const [one, other] = [upstream.split('/'), received.split('/')]
  while (one.length > 1 && other.length > 1 && one.at(-1) === other.at(-1)) {
    one.pop()
    other.pop()
  }
  return [one.join('/'), other.join('/')]
}

const unusable = (why: string): ProxyError => new ProxyError('A2A_CARD', { detail: why })
