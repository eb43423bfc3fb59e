import type { HeaderModifier, RequestRedirect } from '#gen/config/types.ts'
import { defineSlot } from '../exchange/slot.ts'
import type { CallPlan } from './call-plan.ts'
import type { ServiceSlot } from './service.ts'
import type { Registry } from '../telemetry/metrics/registry.ts'
import type { Destination } from '../upstream/destination.ts'

/** One backend of a rule with its reference resolved. */
export interface PlannedBackend {
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
  /** Picks a backend by weight; undefined if there is none. */
  readonly pick: () => PlannedBackend | undefined
  readonly mirrors: readonly PlannedMirror[]
  /** Selects mirrored requests: returns [0, 1), uniformly distributed. */
  readonly random: () => number
  /** Registry for metrics of mirrored calls; default: none. */
  readonly registry?: Registry
}

/** The backend that the rule picked by weight, before its policies run (traffic.md §5 step 5). */
export const pickedBackend = defineSlot<PlannedBackend>('pickedBackend', { isForked: false })
