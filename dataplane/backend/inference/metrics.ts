import type { ModelServerBalancing } from '../../net/upstream/balancer/strategy.ts'

/** What a model server reports. Missing: it does not report it. */
export interface ServerMetrics {
  readonly waiting: number | undefined
  readonly running: number | undefined
  /** Share of the KV cache in use, 0 to 1. */
  readonly kvUse: number | undefined
  /** Tokens that the KV cache holds. */
  readonly cacheTokens: number | undefined
  /** LoRA adapters that have requests; undefined: the server reports none. */
  readonly adapters: readonly string[] | undefined
}

/** Names of the metrics of one kind of server; several names of one value are of several versions. */
interface Dialect {
  readonly path: string
  readonly waiting: readonly string[]
  readonly running: readonly string[]
  readonly kvUse?: readonly string[]
  /** Metric and label, or metrics, whose product is the size of the cache in tokens. */
  readonly cache?: { readonly info: string; readonly labels: readonly string[] } | { readonly factors: readonly string[] }
  /** Metric whose labels list adapters. */
  readonly adapters?: { readonly info: string; readonly labels: readonly string[] }
}

/** Sources: documentation and source of the servers, vLLM 0.33, SGLang 0.5.23, TGI 3.3, TensorRT-LLM 1.1, llama.cpp b6800, read in 2026-09. */
export const dialects = {
  VLLM: {
    path: '/metrics',
    waiting: ['vllm:num_requests_waiting'],
    running: ['vllm:num_requests_running'],
    kvUse: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
    cache: { info: 'vllm:cache_config_info', labels: ['block_size', 'num_gpu_blocks'] },
    adapters: { info: 'vllm:lora_requests_info', labels: ['running_lora_adapters', 'waiting_lora_adapters'] },
  },
  SGLang: {
    path: '/metrics',
    waiting: ['sglang:num_queue_reqs'],
    running: ['sglang:num_running_reqs'],
    kvUse: ['sglang:token_usage'],
    cache: { factors: ['sglang:page_size', 'sglang:num_pages'] },
  },
  TGI: { path: '/metrics', waiting: ['tgi_queue_size'], running: ['tgi_batch_current_size'] },
  TensorRTLLM: {
    path: '/prometheus/metrics',
    waiting: ['trtllm_num_requests_waiting'],
    running: ['trtllm_num_requests_running'],
    kvUse: ['trtllm_kv_cache_utilization'],
    cache: { factors: ['trtllm_kv_cache_tokens_per_block', 'trtllm_kv_cache_max_blocks'] },
  },
  LlamaCpp: { path: '/metrics', waiting: ['llamacpp:requests_deferred'], running: ['llamacpp:requests_processing'] },
} as const satisfies Readonly<Record<NonNullable<ModelServerBalancing['engine']>, Dialect>>

type DialectName = keyof typeof dialects
const names = Object.keys(dialects) as DialectName[]

/** Series of one metric that are read: a server with data-parallel ranks has one for each. */
const MAX_SERIES = 256
const MAX_ADAPTERS = 256

/** Reads the text of a server's metrics; undefined if it has those of no known server. `only`: the server that the config names. */
export function parseMetrics(text: string, only?: DialectName): ServerMetrics | undefined {
  const name = only ?? names.find((each) => hasDialect(text, dialects[each]))
  if (name === undefined || !hasDialect(text, dialects[name])) return undefined
  const dialect: Dialect = dialects[name]
  const adapters = dialect.adapters && adaptersOf(text, dialect.adapters)
  return {
    waiting: sumOf(text, dialect.waiting),
    running: sumOf(text, dialect.running),
    // The fullest rank limits the server.
    kvUse: dialect.kvUse && valuesOf(text, dialect.kvUse).reduce<number | undefined>((most, value) => Math.max(most ?? 0, value), undefined),
    cacheTokens: dialect.cache && cacheOf(text, dialect.cache),
    adapters,
  }
}

const hasDialect = (text: string, { waiting, running }: Dialect): boolean => [...waiting, ...running].some((name) => seriesOf(text, name).next().done !== true)

interface Series {
  readonly labels: string
  readonly value: number
}

/** The series of a metric (Prometheus text format), found without reading the others: histograms are most of the text. */
function* seriesOf(text: string, name: string): Generator<Series> {
  let count = 0
  for (let at = text.indexOf(name); at !== -1 && count < MAX_SERIES; at = text.indexOf(name, at + name.length)) {
    const next = text[at + name.length]
    if ((at > 0 && text[at - 1] !== '\n') || (next !== '{' && next !== ' ')) continue
    const end = text.indexOf('\n', at)
    const line = text.slice(at + name.length, end === -1 ? undefined : end)
    const close = next === '{' ? line.lastIndexOf('}') : -1
    if (next === '{' && close === -1) continue
    const value = Number(
      line
        .slice(close + 1)
        .trim()
        .split(' ')[0],
    )
    if (!Number.isFinite(value)) continue
    count++
    yield { labels: line.slice(0, close + 1), value }
  }
}

const valuesOf = (text: string, all: readonly string[]): number[] => all.flatMap((name) => [...seriesOf(text, name)].map(({ value }) => value))

function sumOf(text: string, all: readonly string[]): number | undefined {
  const values = valuesOf(text, all)
  return values.length === 0 ? undefined : values.reduce((sum, value) => sum + value, 0)
}

function cacheOf(text: string, cache: NonNullable<Dialect['cache']>): number | undefined {
  const factors =
    'info' in cache
      ? cache.labels.map((label) => Number([...seriesOf(text, cache.info)].map(({ labels }) => labelOf(labels, label))[0] ?? Number.NaN))
      : cache.factors.map((name) => valuesOf(text, [name])[0] ?? Number.NaN)
  const product = factors.reduce((all, factor) => all * factor, 1)
  return Number.isFinite(product) && product > 0 ? product : undefined
}

/** Each set of labels is a series whose value is its time: the newest holds. */
function adaptersOf(text: string, { info, labels: lists }: NonNullable<Dialect['adapters']>): string[] | undefined {
  let newest: Series | undefined
  for (const series of seriesOf(text, info)) if (newest === undefined || series.value >= newest.value) newest = series
  if (newest === undefined) return undefined
  const { labels } = newest
  const listed = lists.flatMap((name) => (labelOf(labels, name) ?? '').split(','))
  return [...new Set(listed.map((name) => name.trim()).filter((name) => name !== ''))].slice(0, MAX_ADAPTERS)
}

const labelOf = (labels: string, name: string): string | undefined => new RegExp(`[{,]\\s*${name}="([^"]*)"`).exec(labels)?.[1]
