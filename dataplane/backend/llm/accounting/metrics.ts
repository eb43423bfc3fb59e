import { METRIC_PREFIX } from '#api/names.ts'
import type { Exchange, RouteLabels } from '../../../request/exchange/exchange.ts'
import { defineMetrics, ROUTE_LABELS, routeValues, UNKNOWN } from '../../../observe/telemetry/metrics/area.ts'
import type { Target, UnknownKind } from '../common/types.ts'
import type { PriceStatus } from '../pricing/table.ts'
import type { HistogramSeries, Series } from '../../../observe/telemetry/metrics/registry.ts'

const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power)
const DURATION = Array.from({ length: 14 }, (_, power) => 0.01 * 2 ** power)
const FIRST_TOKEN = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
const PER_TOKEN = [0.001, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5]
const LABELS = ['gen_ai_operation_name', 'gen_ai_system', 'gen_ai_request_model', 'gen_ai_response_model', ...ROUTE_LABELS] as const
/** Model names come from clients, so their number is limited: further models share the label `other`. */
const MAX_MODELS = 200
const OTHER = 'other'
/** Cached combinations of labels per route. */
const MAX_CACHED_SERIES = 1000

/** The labels of one exchange's metrics. */
export interface LlmLabels {
  readonly operation: 'chat' | 'embeddings' | 'rerank' | 'moderation' | 'shadow' | 'judge'
  readonly system: string
  readonly requestModel: string | undefined
  readonly responseModel: string | undefined
  /** Why the operation failed (`error.type` of OpenTelemetry); empty, as a label that is absent: it did not. */
  readonly errorType: string
}

/** The series for one combination of route, provider and models. Series that may stay unused are created on first use. */
interface LlmSeries {
  readonly duration: HistogramSeries
  readonly input: () => HistogramSeries
  readonly output: () => HistogramSeries
  readonly cacheRead: () => HistogramSeries
  readonly cacheWrite: () => HistogramSeries
  readonly firstToken: () => HistogramSeries
  readonly perToken: () => HistogramSeries
  readonly cost: () => Series
}

interface SeriesCache {
  readonly byKey: Map<string, LlmSeries>
  last: (LlmLabels & { readonly series: LlmSeries }) | undefined
}

/** The metrics of llm.md §17.2. */
export const llmMetrics = defineMetrics((registry) => {
  const name = (rest: string): string => `${METRIC_PREFIX}gen_ai_${rest}`
  const tokens = registry.histogram(name('client_token_usage'), 'Tokens of a request, by kind.', TOKENS, ['gen_ai_token_type', ...LABELS])
  const duration = registry.histogram(name('server_request_duration'), 'Seconds from an LLM request to the end of its response.', DURATION, [
    ...LABELS,
    'error_type',
  ])
  const firstToken = registry.histogram(name('server_time_to_first_token'), 'Seconds from a streamed LLM request to its first token.', FIRST_TOKEN, LABELS)
  const perToken = registry.histogram(name('server_time_per_output_token'), 'Seconds between output tokens after the first.', PER_TOKEN, LABELS)
  const cost = registry.counter(name('client_cost_total'), 'Cost of LLM requests, in the currency of the price table.', LABELS)
  const lookups = registry.counter(`${METRIC_PREFIX}cost_catalog_lookups_total`, 'Lookups of the price of a model, by result.', ['status'])
  const cached = registry.counter(`${METRIC_PREFIX}llm_cache_requests_total`, 'LLM requests to backends with a response cache, by result.', ['result'])
  const omitted = registry.counter(`${METRIC_PREFIX}llm_omitted_total`, 'LLM requests of which parts were left out that their provider does not support.', [
    'gen_ai_system',
  ])
  const unknown = registry.counter(
    `${METRIC_PREFIX}llm_unknown_total`,
    'Parts, finish reasons and errors in responses of LLM providers that the gateway does not know. Parts are left out or passed on, reasons are an ordinary end.',
    ['target', 'kind'],
  )
  const saved = registry.counter(`${METRIC_PREFIX}llm_cache_saved_cost_total`, 'Cost of the responses that the LLM cache returned again.', [])
  const models = new Set<string>()
  const modelLabel = (model: string | undefined): string => {
    if (model === undefined || model === '') return UNKNOWN
    if (models.has(model)) return model
    if (models.size >= MAX_MODELS) return OTHER
    models.add(model)
    return model
  }
  const bind = (exchange: Exchange, { operation, system, errorType }: LlmLabels, requestModel: string, responseModel: string): LlmSeries => {
    const values = [operation, system, requestModel, responseModel, ...routeValues(exchange)]
    const counted = (type: string): (() => HistogramSeries) => once(() => tokens.series(type, ...values))
    return {
      duration: duration.series(...values, errorType),
      input: counted('input'),
      output: counted('output'),
      cacheRead: counted('input_cache_read'),
      cacheWrite: counted('input_cache_write'),
      firstToken: once(() => firstToken.series(...values)),
      perToken: once(() => perToken.series(...values)),
      cost: once(() => cost.series(...values)),
    }
  }
  const caches = new WeakMap<Partial<RouteLabels>, SeriesCache>()
  return {
    priceLookups: (status: PriceStatus): Series => lookups.series(status),
    cacheResults: (result: 'hit' | 'miss' | 'bypass'): Series => cached.series(result),
    omitted: (system: string): Series => omitted.series(system),
    unknown: (target: Target, kind: UnknownKind): Series => unknown.series(target, kind),
    cacheSavedCost: once(() => saved.series()),
    /**
     * The series of an exchange. Models are labels only if the upstream confirmed them (`isConfirmed`), because clients can invent any
     * number of names.
     */
    seriesOf(exchange: Exchange, labels: LlmLabels, isConfirmed: boolean): LlmSeries {
      const requestModel = isConfirmed ? modelLabel(labels.requestModel) : UNKNOWN
      const responseModel = isConfirmed ? modelLabel(labels.responseModel) : UNKNOWN
      // Each compiled route has its own labels object.
      const route = exchange.labels ?? unrouted
      let cache = caches.get(route)
      if (cache === undefined) caches.set(route, (cache = { byKey: new Map(), last: undefined }))
      const { last } = cache
      const { operation, system, errorType } = labels
      // Most requests of a route have the same labels; avoid building a key for them.
      const isLast = last?.operation === operation && last.system === system && last.requestModel === requestModel && last.responseModel === responseModel
      if (isLast && last.errorType === errorType) return last.series
      const key = `${operation} ${system} ${errorType} ${requestModel} ${responseModel}`
      let series = cache.byKey.get(key)
      if (series === undefined) {
        if (cache.byKey.size >= MAX_CACHED_SERIES) cache.byKey.clear()
        cache.byKey.set(key, (series = bind(exchange, labels, requestModel, responseModel)))
      }
      cache.last = { operation, system, requestModel, responseModel, errorType, series }
      return series
    },
  }
})

const unrouted: Partial<RouteLabels> = {}

/** Creates the value on first use, so that unused series are not exported. */
function once<T extends object>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}
