import type { HeaderModifier, RequestRedirect } from '#gen/config/types.ts'
import { defineSlot } from '../exchange/slot.ts'
import type { CallPlan } from './call-plan.ts'
import type { ServiceSlot } from './service.ts'
import type { Registry } from '../telemetry/metrics/registry.ts'
import type { Destination } from '../upstream/destination.ts'

/** One backend of a rule, its reference resolved. */
export interface PlannedBackend {
  readonly destination: Destination
  /** Set for ProxyBackends that answer by themselves (LLM, MCP); `current` is undefined while the backend is a plain destination. */
  readonly service?: ServiceSlot | undefined
  readonly weight: number
  readonly requestHeaders: readonly HeaderModifier[]
  readonly responseHeaders: readonly HeaderModifier[]
  readonly redirect: RequestRedirect | undefined
  readonly mirrors: readonly PlannedMirror[]
}

export interface PlannedMirror {
  readonly destination: Destination
  readonly numerator: number
  readonly denominator: number
}

/** What the end of a rule's chain does: pick a backend, mirror, call, retry. */
export interface ForwardPlan extends CallPlan {
  /** A backend by weight; undefined when there is none to choose. */
  readonly pick: () => PlannedBackend | undefined
  readonly mirrors: readonly PlannedMirror[]
  /** Uniform in [0, 1): decides which requests are mirrored. */
  readonly random: () => number
  /** Where mirrored calls are counted; default: nowhere. */
  readonly registry?: Registry
}

/** The backend that the rule picked by weight, before its policies run (traffic.md §5 step 5). */
export const pickedBackend = defineSlot<PlannedBackend>('pickedBackend', { isForked: false })
