import type { ResponseHead } from '../../http/message.ts'
import type { EndpointState } from './balancer/balancer.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'

/** What a kind of backend adds to the requests of its destinations. They are compiled with the destination, and absent for most. */
export interface DestinationHooks {
  /**
   * Chooses the endpoints of a request, before credentials are added. undefined: the client has its response already, in `exchange.response`. Rejects
   * with a ProxyError. `maxBufferBytes`: limit of bodies that are read; undefined: the default.
   */
  choose?(exchange: Exchange, pool: EndpointPool, maxBufferBytes: number | undefined): Promise<EndpointChoice | undefined>
  /** Prepares the request, which has its credentials but no signature. Returns what finishes the response. Throws a ProxyError. */
  prepare?(exchange: Exchange): ResponseFinisher
}

/** The destination that endpoints are chosen from. */
export interface EndpointPool {
  readonly name: string
  /** The endpoint with that label; undefined: there is none. */
  endpointAt(label: string): object | undefined
  /** Endpoints of the config. */
  readonly endpoints: readonly EndpointState[]
  /** Those that the load balancer would pick from: the nearest that are not draining and not evicted. The list changes only when its content does. */
  readonly available: readonly EndpointState[]
}

/** The endpoints of one request. */
export interface EndpointChoice {
  /** Labels of endpoints in order of preference; undefined: the load balancer selects one. */
  readonly labels: readonly string[] | undefined
  /** Who chose, for logs and traces: `the endpoint picker`. */
  readonly by: string
  /** The request failed. */
  abandon(error: Error): void
  /** The response has its head. */
  report(): Promise<void>
}

interface ResponseFinisher {
  /** The response for the client. Rejects with a ProxyError. */
  finish(response: ResponseHead): Promise<ResponseHead>
}
