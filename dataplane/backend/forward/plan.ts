import type { HeaderModifier, RequestRedirect } from '#gen/config/types.ts'
import type { Exchange, PickedBackend } from '../../request/exchange/exchange.ts'
import type { CallPlan } from './call-plan.ts'
import type { SessionPersistence } from './persistence.ts'
import type { ServiceSlot } from './service.ts'
import type { Registry } from '../../observe/telemetry/metrics/registry.ts'
import type { Destination } from '../../net/upstream/destination.ts'

/** One backend of a rule with its reference resolved. */
export interface PlannedBackend extends PickedBackend {
  readonly destination: Destination
  /** Set for ProxyBackends with a service (LLM, MCP). `current` is undefined while the backend is a plain destination. */
  readonly service?: ServiceSlot | undefined
  readonly weight: number
  readonly requestHeaders: readonly HeaderModifier[]
  readonly responseHeaders: readonly HeaderModifier[]
  readonly redirect: RequestRedirect | undefined
  readonly mirrors: readonly PlannedMirror[]
}

/** A mirror of a rule; `numerator` of `denominator` requests are sent to it. */
export interface PlannedMirror {
  readonly destination: Destination
  readonly numerator: number
  readonly denominator: number
}

/** Plan for the end of a rule's chain: pick a backend, mirror, call, retry. */
export interface ForwardPlan extends CallPlan {
  readonly backends: readonly PlannedBackend[]
  /** Picks one of `backends` by weight and, with ConsistentHash, by the key of the request; undefined if there is none. */
  readonly pick: (exchange: Exchange) => PlannedBackend | undefined
  /** Default: requests of a client can go to any endpoint. */
  readonly persistence?: SessionPersistence | undefined
  readonly mirrors: readonly PlannedMirror[]
  /** Selects mirrored requests: returns [0, 1), uniformly distributed. */
  readonly random: () => number
  /** Registry for metrics of mirrored calls; default: none. */
  readonly registry?: Registry
}
