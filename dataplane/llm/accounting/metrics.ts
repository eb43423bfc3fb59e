import { METRIC_PREFIX } from '#api/names.ts'
import type { Exchange, RouteLabels } from '../../exchange/exchange.ts'
import { defineMetrics, ROUTE_LABELS, routeValues, UNKNOWN } from '../../telemetry/metrics/area.ts'
import type { HistogramSeries, Series } from '../../telemetry/metrics/registry.ts'

const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power)
const DURATION = Array.from({ length: 14 }, (_, power) => 0.01 * 2 ** power)
const FIRST_TOKEN = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
const PER_TOKEN = [0.001, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5]
const LABELS = ['gen_ai_operation_name', 'gen_ai_system', 'gen_ai_request_model', 'gen_ai_response_model', ...ROUTE_LABELS] as const
/** Model names come from clients: more than these are counted together. */
const MAX_MODELS = 200
const OTHER = 'other'
/** Pairs of models of one route whose series are at hand. */
const MAX_CACHED_SERIES = 1000

/** What the metrics of one exchange are labelled with. */
export interface LlmLabels {
  readonly operation: 'chat' | 'embeddings'
  readonly system: string
  readonly requestModel: string | undefined
  readonly responseModel: string | undefined
}

/** The series of one route, provider and pair of models. */
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

interface KeptSeries {
  readonly byKey: Map<string, LlmSeries>
  last: (LlmLabels & { readonly series: LlmSeries }) | undefined
}

/** The metrics of llm.md §17.2. */
export const llmMetrics = defineMetrics((registry) => {
  const name = (rest: string): string => `${METRIC_PREFIX}gen_ai_${rest}`
  const tokens = registry.histogram(name('client_token_usage'), 'Tokens of a request, by kind.', TOKENS, ['gen_ai_token_type', ...LABELS])
  const duration = registry.histogram(name('server_request_duration'), 'Seconds from an LLM request to the end of its answer.', DURATION, LABELS)
  const firstToken = registry.histogram(name('server_time_to_first_token'), 'Seconds from a streamed LLM request to its first token.', FIRST_TOKEN, LABELS)
  const perToken = registry.histogram(name('server_time_per_output_token'), 'Seconds between output tokens after the first.', PER_TOKEN, LABELS)
  const cost = registry.counter(name('client_cost_total'), 'Cost of LLM requests, in the currency of the price table.', LABELS)
  const models = new Set<string>()
  const modelLabel = (model: string | undefined): string => {
    if (model === undefined || model === '') return UNKNOWN
    if (models.has(model)) return model
    if (models.size >= MAX_MODELS) return OTHER
    models.add(model)
    return model
  }
  const bind = (exchange: Exchange, { operation, system }: LlmLabels, requestModel: string, responseModel: string): LlmSeries => {
    const values = [operation, system, requestModel, responseModel, ...routeValues(exchange)]
    const counted = (type: string): (() => HistogramSeries) => once(() => tokens.series(type, ...values))
    return {
      duration: duration.series(...values),
      input: counted('input'),
      output: counted('output'),
      cacheRead: counted('input_cache_read'),
      cacheWrite: counted('input_cache_write'),
      firstToken: once(() => firstToken.series(...values)),
      perToken: once(() => perToken.series(...values)),
      cost: once(() => cost.series(...values)),
    }
  }
  const known = new WeakMap<Partial<RouteLabels>, KeptSeries>()
  return {
    /** The series of an exchange. Models count only where an upstream has confirmed them: clients could make up names without end. */
    seriesOf(exchange: Exchange, labels: LlmLabels, isConfirmed: boolean): LlmSeries {
      const requestModel = isConfirmed ? modelLabel(labels.requestModel) : UNKNOWN
      const responseModel = isConfirmed ? modelLabel(labels.responseModel) : UNKNOWN
      // One object for each compiled route.
      const route = exchange.labels ?? unrouted
      let ofRoute = known.get(route)
      if (ofRoute === undefined) known.set(route, (ofRoute = { byKey: new Map(), last: undefined }))
      const { last } = ofRoute
      const { operation, system } = labels
      // Most requests of a route are alike: no key has to be put together for them.
      if (last?.operation === operation && last.system === system && last.requestModel === requestModel && last.responseModel === responseModel)
        return last.series
      const key = `${operation} ${system} ${requestModel} ${responseModel}`
      let series = ofRoute.byKey.get(key)
      if (series === undefined) {
        if (ofRoute.byKey.size >= MAX_CACHED_SERIES) ofRoute.byKey.clear()
        ofRoute.byKey.set(key, (series = bind(exchange, labels, requestModel, responseModel)))
      }
      ofRoute.last = { operation, system, requestModel, responseModel, series }
      return series
    },
  }
})

const unrouted: Partial<RouteLabels> = {}

/** Made when it is first asked for: what is never counted has no series. */
function once<T extends object>(make: () => T): () => T {
  let made: T | undefined
  return () => (made ??= make())
}
