import type { Backend, BackendFull } from '#gen/config/types.ts'
import type { ConfigSnapshot } from '../../config/store.ts'
import type { Destinations } from '../../net/destination/destinations.ts'
import type { ErrorFormat } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import type { RequestHead, ResponseHead } from '../../http/message.ts'
import type { PolicyState } from '../../policy/state.ts'
import type { CallPlan } from './call-plan.ts'

/** A ProxyBackend that handles requests itself and calls its upstreams as needed (LLM, MCP, agent runtime). */
export interface BackendService {
  /** Handles a request. Resolves with the response head. Rejects with a ProxyError. The service retries its calls by `plan.retry`. */
  handle(exchange: Exchange, plan: CallPlan): Promise<ResponseHead>
  /** Applies a new version of the config. Sessions and the state of unchanged parts are kept. */
  update(config: ServiceConfig): void
  /** Stops the service. No new requests follow; requests in flight continue. */
  close(): void
  /** False if no part transforms requests or responses, so that chains need no step for it. Default: true. */
  readonly mayTransform?: boolean
  /** Whether the service responds to a request by itself and it costs nothing, so that it needs no key of a budget. Default: no. */
  isFree?(request: RequestHead): boolean
  /** The format of errors of the policies that run before the service; default: text. */
  readonly formatError?: ErrorFormat
}

/** Configuration of a service. */
export interface ServiceConfig {
  readonly backend: Backend
  /** Policies from Gateway to rule, then those attached to the backend, weakest first. `backend.policies` overrides all of them. */
  readonly sections: readonly BackendFull[]
  /** The policies from Gateway to rule, merged: `outer` of the backend's parts. */
  readonly outer: BackendFull | undefined
  /** Policies attached to one part by name (`sectionName`), weakest first. They override `sections`; inline policies of the backend override them. */
  readonly sectionsOf: (part: string) => readonly BackendFull[]
  /** Policies attached to another backend, or to one part of it, weakest first. */
  readonly policiesOf: (backend: string, part: string) => readonly BackendFull[]
  readonly snapshot: ConfigSnapshot
  readonly destinations: Destinations
  readonly state: PolicyState
}

/** Holds the current service of a backend for a rule, over config versions. */
export interface ServiceSlot {
  /** Undefined while the backend is a plain destination or does not exist. */
  current: BackendService | undefined
}
