import type { Registry } from '../../observe/telemetry/metrics/registry.ts'
import type { Pick } from './choose.ts'
import type { Prompt } from './prompt.ts'
import { metricsStates } from './server.ts'
import type { ModelServers } from './servers.ts'

/** Metrics of the built-in picker. */
class InferenceMetrics {
  readonly #pools = new Map<string, ModelServers>()
  readonly #prompt
  readonly #cached

  constructor(registry: Registry) {
    this.#prompt = registry.counter('proxy_inference_prompt_tokens_total', 'Estimated tokens of prompts that the built-in picker read.', ['backend'])
    this.#cached = registry.counter('proxy_inference_cached_tokens_total', 'Estimated tokens of them that the picked server had cached.', ['backend'])
    const gauge = (name: string, help: string, labels = ['backend']) => registry.gauge(`proxy_inference_${name}`, help, labels, 'max')
    const waiting = gauge('waiting_requests', 'Requests that wait in model servers, as they report it.')
    const running = gauge('running_requests', 'Requests in flight at model servers, those of others that they report included.')
    const kv = gauge('kv_cache_use', 'Mean share of the KV cache of model servers that is in use, as they report it.')
    const servers = gauge('servers', 'Model servers by what is known of their metrics: unknown, read, missing, unsupported, unreachable.', [
      'backend',
      'metrics',
    ])
    registry.onCollect(() => {
      for (const [backend, pool] of this.#pools) {
        const all = [...pool.all]
        const sum = (read: (server: (typeof all)[number]) => number): number => all.reduce((total, server) => total + read(server), 0)
        waiting.series(backend).value = sum((server) => server.waiting)
        running.series(backend).value = sum((server) => server.requests + server.others)
        kv.series(backend).value = sum((server) => server.kvUse) / Math.max(1, all.length)
        for (const state of metricsStates) servers.series(backend, state).value = all.filter((server) => server.state === state).length
      }
    })
  }

  count(backend: string, servers: ModelServers, { tokens }: Prompt, { matched }: Pick): void {
    this.#pools.set(backend, servers)
    this.#prompt.series(backend).value += tokens
    this.#cached.series(backend).value += matched
  }
}

const known = new WeakMap<Registry, InferenceMetrics>()

export function inferenceMetrics(registry: Registry): InferenceMetrics {
  let metrics = known.get(registry)
  if (metrics === undefined) known.set(registry, (metrics = new InferenceMetrics(registry)))
  return metrics
}
