import { METRIC_PREFIX } from '#api/names.ts'
import type { Exchange } from '../exchange.ts'
import { defineMetrics, ROUTE_LABELS, routeValues, UNKNOWN } from '../telemetry/area.ts'
import type { Usage } from './formats/types.ts'

const TOKENS = Array.from({ length: 14 }, (_, power) => 4 ** power)
const DURATION = Array.from({ length: 14 }, (_, power) => 0.01 * 2 ** power)
const FIRST_TOKEN = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]
const PER_TOKEN = [0.001, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5]
const LABELS = ['gen_ai_operation_name', 'gen_ai_system', 'gen_ai_request_model', 'gen_ai_response_model', ...ROUTE_LABELS] as const
/** Model names come from clients: more than these are counted together. */
const MODEL_LIMIT = 200
const OTHER = 'other'

/** What the metrics of one exchange are labelled with. */
export interface LlmLabels {
  readonly operation: 'chat' | 'embeddings'
  readonly system: string
  readonly requestModel: string | undefined
  readonly responseModel: string | undefined
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
    if (models.size >= MODEL_LIMIT) return OTHER
    models.add(model)
    return model
  }
  const valuesOf = (exchange: Exchange, { operation, system, requestModel, responseModel }: LlmLabels, isConfirmed: boolean): string[] => [
    operation,
    system,
    // Only what an upstream has confirmed: clients could make up names without end.
    isConfirmed ? modelLabel(requestModel) : UNKNOWN,
    isConfirmed ? modelLabel(responseModel) : UNKNOWN,
    ...routeValues(exchange),
  ]
  return {
    countTokens(exchange: Exchange, labels: LlmLabels, usage: Usage): void {
      const values = valuesOf(exchange, labels, true)
      const count = (type: string, number: number | undefined): void => {
        if (number !== undefined) tokens.series(type, ...values).observe(number)
      }
      count('input', usage.inputTokens)
      count('output', usage.outputTokens)
      count('input_cache_read', usage.cachedInputTokens)
      count('input_cache_write', usage.cacheCreationInputTokens)
    },
    observeDuration: (exchange: Exchange, labels: LlmLabels, seconds: number, isConfirmed: boolean): void =>
      duration.series(...valuesOf(exchange, labels, isConfirmed)).observe(seconds),
    observeStream(exchange: Exchange, labels: LlmLabels, firstTokenSeconds: number, perTokenSeconds: number | undefined): void {
      const values = valuesOf(exchange, labels, true)
      firstToken.series(...values).observe(firstTokenSeconds)
      if (perTokenSeconds !== undefined) perToken.series(...values).observe(perTokenSeconds)
    },
    addCost(exchange: Exchange, labels: LlmLabels, amount: number): void {
      cost.series(...valuesOf(exchange, labels, true)).value += amount
    },
  }
})
