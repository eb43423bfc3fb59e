import { parseDuration } from '#api/duration.ts'
import type { LoadBalancer, ModelServer } from '#gen/config/types.ts'
import type { LoadBalancing, ModelServerBalancing } from '../upstream/balancer/strategy.ts'

/** Compiles the `loadBalancer` section of a backend policy (traffic.md §13.4). */
export function compileLoadBalancer({ type = 'LeastRequest', consistentHash, modelServer, slowStart, panicThreshold }: LoadBalancer): LoadBalancing {
  const ttlMs = parseDuration(consistentHash?.ttl ?? '')
  const { maxLoad } = consistentHash ?? {}
  return {
    type,
    modelServer: type === 'ModelServer' ? compileModelServer(modelServer) : undefined,
    panicThreshold: panicThreshold === undefined ? undefined : panicThreshold / 100,
    slowStartMs: parseDuration(slowStart?.window ?? ''),
    hash: consistentHash && {
      type: consistentHash.type,
      name: consistentHash.type === 'Header' ? (consistentHash.name ?? '').toLowerCase() : (consistentHash.name ?? ''),
      ttlSeconds: ttlMs === undefined ? undefined : Math.floor(ttlMs / 1000),
      maxLoad: maxLoad === undefined ? undefined : maxLoad / 100,
    },
  }
}

/** Compiles `loadBalancer.modelServer`; undefined: an InferencePool without a picker. */
export function compileModelServer({ engine, metricsPath, weights = {} }: ModelServer = {}): ModelServerBalancing {
  const { prefix = 100, queue = 100, running = 100, kvCache = 100, adapter = 100 } = weights
  return {
    engine,
    metricsPath,
    weights: { prefix: prefix / 100, queue: queue / 100, running: running / 100, kvCache: kvCache / 100, adapter: adapter / 100 },
  }
}
