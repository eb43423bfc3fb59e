import type { Exchange } from '../../request/exchange/exchange.ts'
import { isGrpcRequest, ProxyError } from '../../request/exchange/error.ts'
import { bufferedRequest, bufferRequest, MAX_BUFFER_BYTES } from '../../request/expression/buffer.ts'
import { ObservedBody } from '../../http/observe.ts'
import { setLogField } from '../../observe/telemetry/access-log/fields.ts'
import type { Registry } from '../../observe/telemetry/metrics/registry.ts'
import type { DestinationHooks, EndpointChoice, EndpointPool } from '../../net/upstream/hooks.ts'
import type { ModelServerBalancing } from '../../net/upstream/balancer/strategy.ts'
import type { SharedCells } from '../../runtime/shared-cells.ts'
import type { Pick } from './choose.ts'
import { inferenceMetrics } from './telemetry.ts'
import { emptyPrompt, readPrompt, type Prompt } from './prompt.ts'
import type { ModelServer } from './server.ts'
import { ModelServers } from './servers.ts'

/** The servers of each pool, which outlive versions of the config. */
const serversOf = new WeakMap<EndpointPool, ModelServers>()

/** The built-in endpoint picker: chooses a model server by what it has cached, what it has to do, and its metrics. */
export function builtinHooks(settings: ModelServerBalancing, registry: Registry, cells: SharedCells | undefined): DestinationHooks {
  return {
    async choose(exchange, pool, maxBufferBytes) {
      let servers = serversOf.get(pool)
      if (servers === undefined) serversOf.set(pool, (servers = new ModelServers(pool, settings, cells)))
      const prompt = await promptOf(exchange, maxBufferBytes)
      const nowMs = performance.now()
      const { chooser } = servers
      chooser.weights = settings.weights
      const pick = chooser.pick(prompt, servers.use(settings, nowMs), nowMs)
      if (pick === undefined) return { labels: undefined, by: 'the built-in picker', abandon: () => undefined, report: () => Promise.resolve() }
      inferenceMetrics(registry).count(pool.name, servers, prompt, pick)
      setLogField(exchange, 'inferencepool.selected_endpoint', pick.server.endpoint.label)
      return new BuiltinChoice(exchange, servers, prompt, pick)
    },
  }
}

/** Waits for the whole body, as the server does. Calls of gRPC are not read: their bodies may never end. */
async function promptOf(exchange: Exchange, maxBufferBytes = MAX_BUFFER_BYTES): Promise<Prompt> {
  const { request } = exchange
  if (request.body === undefined || request.upgrade !== undefined || isGrpcRequest(request)) return emptyPrompt
  await bufferRequest(exchange, maxBufferBytes)
  const buffered = bufferedRequest(exchange)
  return buffered === undefined ? emptyPrompt : readPrompt(buffered.prefix)
}

/** Counts the request at its server until the response is complete. */
class BuiltinChoice implements EndpointChoice {
  readonly labels: readonly string[]
  readonly by: string
  readonly #exchange: Exchange
  readonly #servers: ModelServers
  #server: ModelServer
  /** Tokens that the server still has to read. */
  #unread: number
  #isOver = false

  constructor(exchange: Exchange, servers: ModelServers, { tokens }: Prompt, { server, second, matched, cost, equal }: Pick) {
    this.#exchange = exchange
    this.#servers = servers
    this.#server = server
    this.#unread = tokens - matched
    const [first, other] = [server.endpoint.label, second?.endpoint.label]
    const all = other === undefined ? [first] : [first, other]
    // Attempts take the labels in turn. The call of an LLM chooses again for each.
    this.labels = exchange.retryAttempt % all.length === 0 ? all : all.toReversed()
    const cached = `${matched} of about ${tokens} tokens cached, ${server.tokens} to read, ${server.requests + server.others} requests, cost ${cost}`
    this.by = exchange.trace === undefined ? 'the built-in picker' : `the built-in picker (${cached}; ${equal} cost about the same)`
    server.begin(this.#unread)
  }

  abandon(error: Error): void {
    this.#follow()
    // Clients can cause other failures, such as timeouts of long prompts, and must not decide which servers others get.
    if (error instanceof ProxyError && (error.code === 'UPSTREAM_FAILED' || error.code === 'DNS_FAILED')) this.#server.strike(performance.now())
    this.#end()
  }

  report(): Promise<void> {
    this.#follow()
    const { response } = this.#exchange
    if (response !== undefined && response.status >= 502 && response.status <= 504) this.#server.strike(performance.now())
    if (response?.body === undefined || response.upgraded !== undefined) this.#end()
    else response.body = new ObservedBody(response.body, { onData: () => this.#read(), onClose: () => this.#end() })
    return Promise.resolve()
  }

  /** A retry went to another server. */
  #follow(): void {
    const { endpoint, origin } = this.#exchange
    const label = endpoint ?? origin?.endpoint
    const server = label === undefined ? undefined : this.#servers.find(label)
    if (server === undefined || server === this.#server || this.#isOver) return
    this.#read()
    this.#server.end()
    this.#server = server
    server.begin(0)
  }

  #read(): void {
    if (this.#unread === 0) return
    this.#server.read(this.#unread)
    this.#unread = 0
  }

  #end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#read()
    this.#server.end()
  }
}
