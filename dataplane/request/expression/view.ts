import { Duration, HostMap, type Stored } from '#api/cel/index.ts'
import type { BackendType, Exchange } from '../exchange/exchange.ts'
import { viewA2a } from './a2a.ts'
import { RequestView, ResponseView } from './message.ts'
import type { RequestTrace } from '../exchange/trace.ts'
import { variableNamed, variableNames } from '../exchange/variables.ts'
import { viewDestination, viewSource } from './peer.ts'

const ROOTS = ['request', 'response', 'source', 'destination', 'backend', 'proxy', 'env', ...variableNames] as const

/** The variables of an expression: a live view of an exchange. Variables are built when they are read. */
export class ExchangeView extends HostMap {
  readonly #exchange: Exchange
  #request: RequestView | undefined
  #response: ResponseView | undefined
  #source: Record<string, unknown> | undefined

  constructor(exchange: Exchange) {
    super()
    this.#exchange = exchange
  }

  get trace(): RequestTrace | undefined {
    return this.#exchange.trace
  }

  get(key: string): Stored {
    const exchange = this.#exchange
    switch (key) {
      case 'request':
        return (this.#request ??= new RequestView(exchange))
      case 'response':
        return exchange.response && (this.#response ??= new ResponseView(exchange))
      case 'source':
        return (this.#source ??= viewSource(exchange.connection))
      case 'destination':
        return viewDestination(exchange.connection)
      case 'backend':
        return viewBackend(exchange)
      case 'proxy':
        return viewProxy(exchange)
      case 'a2a':
        return viewA2a(exchange)
      case 'env':
        return viewEnv(process.env)
      default: {
        const variable = variableNamed(key)
        // Null, so that `has(jwt.sub)` is false for a request without a token (traffic.md §9).
        return variable && (variable.get(exchange) ?? null)
      }
    }
  }

  *keys(): Iterable<string> {
    for (const root of ROOTS) if ((this.get(root) ?? null) !== null) yield root
  }
}

/** Available once a route is selected, so also to policies that run before the request is sent (traffic.md §5 step 5). */
function viewBackend({ backend, backendType, picked }: Exchange): Record<string, string> | undefined {
  const name = backend ?? picked?.destination.name
  if (name === undefined) return undefined
  const type: BackendType = (backend === undefined ? picked?.destination.type : backendType) ?? 'unknown'
  const protocol = type === 'ai' ? 'llm' : type === 'mcp' ? 'mcp' : picked?.destination.isA2a === true ? 'a2a' : 'http'
  return { name, type, protocol }
}

/** The position of the request in the config. Members appear as the request proceeds. */
function viewProxy(exchange: Exchange): Record<string, unknown> {
  const { connection, labels = {}, startedAtMs, upstreamStartedAtMs, responseHeadAtMs } = exchange
  const { gateway, listener, route, rule, kind } = labels
  return {
    bind: connection.bind,
    gateway: gateway === undefined ? undefined : nameOf(gateway),
    listener: listener === undefined ? undefined : { name: listener },
    route: route === undefined ? undefined : { ...nameOf(route), kind, rule: rule ?? '' },
    requestProcessingDuration: upstreamStartedAtMs === 0 ? undefined : Duration.fromMs(upstreamStartedAtMs - startedAtMs),
    upstreamDuration: responseHeadAtMs === 0 || upstreamStartedAtMs === 0 ? undefined : Duration.fromMs(responseHeadAtMs - upstreamStartedAtMs),
    responseProcessingDuration: responseHeadAtMs === 0 ? undefined : Duration.fromMs(performance.now() - responseHeadAtMs),
  }
}

function nameOf(label: string): Record<string, string> {
  const slash = label.indexOf('/')
  return { namespace: label.slice(0, slash), name: label.slice(slash + 1) }
}

/** The only environment variables that expressions can read. The defaults are those of `program/settings.ts`. */
export function viewEnv({ POD_NAME, NAMESPACE, GATEWAY }: NodeJS.ProcessEnv): Record<string, string> {
  return { podName: POD_NAME || 'proxy', namespace: NAMESPACE || 'default', gateway: GATEWAY || 'proxy' }
}
