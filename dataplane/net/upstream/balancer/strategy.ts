import type { ModelServer } from '#gen/config/types.ts'
import { rendezvousScore, type ConsistentHash } from './hash.ts'

/** An endpoint that a key may select. */
interface Candidate {
  readonly label: string
  /** Of the label. */
  readonly hash: number
  /** Requests in flight. */
  readonly pending: number
}

/** Compiled `loadBalancer.modelServer`. */
export interface ModelServerBalancing {
  /** Undefined: found out by the names of the metrics. */
  readonly engine: NonNullable<ModelServer['engine']> | undefined
  readonly metricsPath: string | undefined
  /** How much each reason counts; 1 is the default. */
  readonly weights: { readonly [K in keyof Required<NonNullable<ModelServer['weights']>>]: number }
}

/** Compiled `backend.loadBalancer`. */
export interface LoadBalancing {
  readonly type: 'LeastRequest' | 'RoundRobin' | 'Random' | 'ConsistentHash' | 'ModelServer'
  /** Set for ConsistentHash. */
  readonly hash: ConsistentHash | undefined
  /** Set for ModelServer. */
  readonly modelServer?: ModelServerBalancing | undefined
  readonly slowStartMs: number | undefined
  /** Share of the endpoints, 0 to 1: if fewer are not evicted, all are used. Default: 0. */
  readonly panicThreshold?: number | undefined
}

/**
 * The endpoint of a key: the one with the highest score that is not `avoid` and, with `maxLoad`, has room. Undefined if there is none. The order
 * of `pool` does not matter.
 */
export function pickByKey<T extends Candidate>(pool: readonly T[], key: number, maxLoad: number | undefined, avoid?: T): T | undefined {
  let most = Infinity
  if (maxLoad !== undefined) {
    // The new request counts.
    let pending = 1
    for (const endpoint of pool) pending += endpoint.pending
    most = Math.ceil((maxLoad * pending) / pool.length)
  }
  let best: T | undefined
  let highest = -1
  for (const endpoint of pool) {
    if (endpoint === avoid || endpoint.pending >= most) continue
    const score = rendezvousScore(key, endpoint.hash)
    if (score > highest || (score === highest && best !== undefined && endpoint.label < best.label)) [best, highest] = [endpoint, score]
  }
  return best
}
