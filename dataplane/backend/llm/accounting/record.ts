import type { Exchange } from '../../../request/exchange/exchange.ts'
import { Duration, fromJson, HostMap, type Stored } from '#api/cel/index.ts'
import { PRICED_UNITS } from '#api/price-catalog.ts'
import { clearLogField, setLogField } from '../../../observe/telemetry/access-log/access-log.ts'
import type { Registry } from '../../../observe/telemetry/metrics/registry.ts'
import { estimateTokens, tokensIn } from './estimate.ts'
import type { FlatMessage, RequestParams, ResponseFacts, StreamFacts, ToolCallFact, Units, Usage, Target, UnknownKind } from '../common/types.ts'
import { reasonOf } from '../../../observe/telemetry/outcome.ts'
import type { HeaderList } from '../../../http/headers.ts'
import { costOf, priceOf, type Price, type Rates } from '../pricing/price.ts'
import type { PriceTable } from '../pricing/table.ts'
import { paramEntries, usageEntries } from './fields.ts'
import { llmMetrics, type LlmLabels } from './metrics.ts'
import { countFailure, countSuccess } from './rollout.ts'
import type { RoutedModel } from './routed.ts'
import type { TokenBudgets } from '../../../request/exchange/token-budgets.ts'
import { variables } from '../../../request/exchange/variables.ts'

/** The facts about a request when it is sent to a provider. */
interface RequestFacts {
  readonly system: string
  readonly requestModel: string | undefined
  readonly isStreaming: boolean
  readonly operation: LlmLabels['operation']
  readonly params: RequestParams
  readonly prices: PriceTable
  /** Computed on demand, because most configurations never read it. */
  readonly prompt: () => readonly FlatMessage[]
  /** Estimated tokens of the prompt. */
  readonly promptTokens: () => number
  /** What the provider bills by in place of tokens, unless its response says how much. */
  readonly units?: Units | undefined
  /** The provider works on when the response has ended. */
  readonly isBackground?: boolean
}

const OMITTED_HEADER = 'x-proxy-omitted'
const MODEL_HEADER = 'x-proxy-model'
/** Places that the header and the log name; the names are those of the client. */
const MAX_PLACES = 20
const MAX_PLACE_LENGTH = 64

/** A list of places for a header. */
function listPlaces(places: readonly string[]): string {
  const named = places.slice(0, MAX_PLACES).map((place) => place.replace(/[^\w.[\]-]/g, '_').slice(0, MAX_PLACE_LENGTH))
  return [...named, ...(places.length > MAX_PLACES ? [`${places.length - MAX_PLACES} more`] : [])].join(', ')
}

const unknownKinds: readonly UnknownKind[] = ['fragment', 'finish_reason', 'error']

/** The texts of a response. */
export type Texts = Pick<ResponseFacts, 'completion' | 'toolCalls'>

/** Why a request is sent that no client sent: a copy for a comparison, or a question to the judge of two responses (llm.md §15.6). */
export type Purpose = 'shadow' | 'judge'

/** What is known of a finished exchange. */
export interface Outcome {
  readonly isComplete: boolean
  readonly facts: ResponseFacts | StreamFacts | undefined
  /** After the guards. */
  readonly texts: Texts
  readonly model: string
  readonly durationMs: number
  readonly firstTokenMs: number | undefined
  readonly cost: number | undefined
}

/** How a response ended: complete, cut off (charged by the part that was forwarded), or as an error (not charged). */
type ResponseEnd = 'complete' | 'partial' | 'error'

/** Records one LLM exchange: the variable `llm` of expressions, access log and span fields, metrics and token budgets. */
export class LlmRecord extends HostMap {
  readonly #exchange: Exchange
  readonly #registry: Registry
  #request: RequestFacts | undefined
  /** The choice of a target, which changes when a target fails. */
  routed: RoutedModel | undefined
  #response: ResponseFacts | undefined
  #shown: Texts | undefined
  #readShown: (() => Texts | undefined) | undefined
  #firstTokenAtMs: number | undefined
  #isFinished = false
  #omitted: string | undefined
  /** Targets that failed, each with the cause. */
  #failed: string | undefined
  #target: Target | undefined
  #endedAtMs = 0
  /** Begin of the current attempt. */
  #attemptAtMs = 0
  /** Price of the exchange, once it is known. */
  #cost: number | undefined
  #costRates: Rates | undefined
  #priceFound: Price | undefined
  /** Usage of attempts that failed after the provider had reported it. */
  #lostTokens = 0
  #lostUsd = 0
  #isReusable = false
  readonly #purpose: Purpose | undefined
  /** Called once, when the response has ended. */
  onFinish: ((outcome: Outcome) => void) | undefined
  /** What the last attempt found in the cache. */
  #cacheMiss: 'miss' | 'bypass' | undefined

  constructor(exchange: Exchange, registry: Registry, purpose?: Purpose) {
    super()
    this.#exchange = exchange
    this.#registry = registry
    this.#purpose = purpose
    variables.llm.set(exchange, this)
  }

  /** Records the request of the current attempt. */
  begin(request: RequestFacts): void {
    this.#request = request
    this.#attemptAtMs = performance.now()
    const exchange = this.#exchange
    setLogField(exchange, 'gen_ai.operation.name', this.#purpose ?? request.operation)
    setLogField(exchange, 'gen_ai.provider.name', request.system)
    if (request.requestModel === undefined) clearLogField(exchange, 'gen_ai.request.model')
    else setLogField(exchange, 'gen_ai.request.model', request.requestModel)
    for (const [key, field] of paramEntries) {
      const value = request.params[key]
      // The provider of an earlier attempt may have set it.
      if (value === undefined) clearLogField(exchange, field)
      // A number that a double cannot represent is logged as text.
      else setLogField(exchange, field, typeof value === 'object' ? JSON.stringify(value) : value)
    }
  }

  /** Records the choice of a target. */
  setRouted(routed: RoutedModel): void {
    this.routed = routed
    setLogField(this.#exchange, 'proxy.ai.model.requested', routed.requested)
  }

  #logTarget({ target, skipped }: RoutedModel): void {
    if (target !== undefined) setLogField(this.#exchange, 'proxy.ai.model.target', target)
    if (skipped.length > 0) setLogField(this.#exchange, 'proxy.ai.model.skipped', skipped.map((one) => `${one.target}: ${one.reason}`).join('; '))
  }

  /** Records the parts of the current attempt's request that its provider does not support (llm.md §7.1). */
  omit(places: readonly string[]): void {
    this.#omitted = places.length === 0 ? undefined : listPlaces(places)
    if (this.#omitted === undefined) clearLogField(this.#exchange, 'proxy.ai.omitted')
    else setLogField(this.#exchange, 'proxy.ai.omitted', this.#omitted)
  }

  /** Records that an attempt failed, and why (llm.md §15.4). `status` of the response; undefined: there was none. */
  failAttempt(target: string, cause: string, status: number | undefined): void {
    const failed = `${target}: ${cause}${status === undefined ? '' : ` (${status})`}`
    this.#failed = this.#failed === undefined ? failed : `${this.#failed}, ${failed}`
    setLogField(this.#exchange, 'proxy.ai.failed', this.#failed)
  }

  /** Counts a failure that the target is to blame for, in the rollouts that it is part of. */
  blameTarget(): void {
    for (const arm of this.routed?.arms ?? []) countFailure(this.#registry, arm)
  }

  /** Records the API of the current attempt. */
  aim(target: Target): void {
    this.#target = target
  }

  /** Counts what was not understood in a response. */
  countUnknown(kind: UnknownKind, count = 1): void {
    if (this.#target !== undefined) llmMetrics(this.#registry).unknown(this.#target, kind).value += count
  }

  /** Names the parts that were left out, and the model that responds, to the client. Headers of the provider with these names are no reports of the gateway. */
  addHeaders(headers: HeaderList): void {
    if (this.#omitted !== undefined) headers.set(OMITTED_HEADER, this.#omitted)
    else if (headers.has(OMITTED_HEADER)) headers.remove(OMITTED_HEADER)
    const model = this.routed && this.#request?.requestModel
    if (model !== undefined) headers.set(MODEL_HEADER, model.replace(/[^\x21-\x7e]/g, '_'))
    else if (headers.has(MODEL_HEADER)) headers.remove(MODEL_HEADER)
  }

  /** Records the model of a request that is read while it streams. */
  setRequestModel(model: string): void {
    if (this.#request === undefined) return
    this.#request = { ...this.#request, requestModel: model }
    setLogField(this.#exchange, 'gen_ai.request.model', model)
  }

  /** Records the time of the first token. Only streams have one (llm.md §17.2). */
  recordContent(): void {
    if (this.#request?.isStreaming === true) this.#firstTokenAtMs ??= performance.now()
  }

  /**
   * Records the response, or the part of it that was received. `readShown` returns its texts after the guards; it is called when an expression
   * reads them. `failure`: why it failed, for metrics (llm.md §17.2). Only the first call counts.
   */
  finish(reported: ResponseFacts | StreamFacts | undefined, end: ResponseEnd, readShown: () => Texts | undefined = () => reported, failure?: string): void {
    if (this.#isFinished) return
    this.#isFinished = true
    this.#endedAtMs = performance.now()
    const units = end === 'error' ? undefined : this.#request?.units
    const facts = units === undefined ? reported : { ...(reported ?? withoutReport), usage: { ...units, ...reported?.usage } }
    this.#response = facts
    this.#readShown = readShown
    this.#isReusable = end === 'complete' && !(facts !== undefined && 'error' in facts && facts.error !== undefined)
    const exchange = this.#exchange
    const usage = facts?.usage ?? {}
    if (this.routed !== undefined) this.#logTarget(this.routed)
    if (facts !== undefined && end !== 'error') this.#price(facts)
    if (exchange.tokenBudgets !== undefined) this.#settle(exchange.tokenBudgets, facts, end)
    if (this.#lostUsd > 0) this.#addLost(end)
    if (facts?.responseModel !== undefined) setLogField(exchange, 'gen_ai.response.model', facts.responseModel)
    for (const [key, field] of usageEntries) {
      const value = usage[key]
      if (value !== undefined) setLogField(exchange, field, value)
    }
    if (this.#omitted !== undefined) llmMetrics(this.#registry).omitted(this.#request?.system ?? '').value++
    if (facts?.unknown !== undefined) for (const kind of unknownKinds) if (facts.unknown[kind] !== undefined) this.countUnknown(kind, facts.unknown[kind])
    if (this.#cacheMiss !== undefined) llmMetrics(this.#registry).cacheResults(this.#cacheMiss).value++
    this.#measure(facts, end, failure)
    if (this.#isReusable && failure === undefined) this.#countSuccess()
    if (this.onFinish !== undefined) this.onFinish(this.#outcome(facts, this.#isReusable && failure === undefined))
  }

  #countSuccess(): void {
    const [beganAtMs, firstTokenAtMs, endedAtMs, cost] = [this.#attemptAtMs, this.#firstTokenAtMs, this.#endedAtMs, this.#cost]
    for (const arm of this.routed?.arms ?? []) countSuccess(this.#registry, arm, { beganAtMs, firstTokenAtMs, endedAtMs, cost })
  }

  #outcome(facts: ResponseFacts | StreamFacts | undefined, isComplete: boolean): Outcome {
    const request = this.#request
    const first = this.#firstTokenSeconds()
    return {
      isComplete,
      facts,
      texts: this.#texts() ?? { completion: [], toolCalls: [] },
      model: facts?.responseModel ?? request?.requestModel ?? '',
      durationMs: this.#endedAtMs - this.#exchange.startedAtMs,
      firstTokenMs: first === undefined ? undefined : first * 1000,
      cost: this.#cost,
    }
  }

  /** Charges budgets for what the provider reported of an attempt that fails. Returns false if it reported nothing. */
  lose(facts: Pick<ResponseFacts, 'usage' | 'responseModel' | 'serviceTier'>): boolean {
    const { inputTokens, outputTokens = 0 } = facts.usage
    const request = this.#request
    if (inputTokens === undefined || request === undefined) return false
    this.#lostTokens += inputTokens + outputTokens
    const price = request.prices.find(request.system, facts.responseModel, request.requestModel)
    this.#lostUsd += (price && costOf(facts, price)?.cost) ?? 0
    return true
  }

  /** Records a request that failed. `errorType`: the reason of the gateway's error, else the status of the response (llm.md §17.2). */
  fail(errorType: string): void {
    this.finish(undefined, 'error', undefined, errorType)
  }

  /** Records a response from the cache: no tokens are charged. `savedCost`: what the recorded response cost. */
  finishCached(savedCost: number | undefined): void {
    if (this.#isFinished) return
    this.#isFinished = true
    this.#endedAtMs = performance.now()
    this.#exchange.tokenBudgets?.settle(0, 0)
    if (this.routed !== undefined) this.#logTarget(this.routed)
    setLogField(this.#exchange, 'proxy.ai.cache', 'hit')
    const { cacheResults, cacheSavedCost } = llmMetrics(this.#registry)
    cacheResults('hit').value++
    if (savedCost === undefined) return
    setLogField(this.#exchange, 'proxy.ai.cache.saved_cost', savedCost)
    cacheSavedCost().value += savedCost
  }

  /** Records that the response of this attempt comes from a provider although a cache is set; the request is counted when it ends. */
  missCache(result: 'miss' | 'bypass'): void {
    setLogField(this.#exchange, 'proxy.ai.cache', result)
    this.#cacheMiss = result
  }

  /** Whether the response was complete and without an error. */
  get isReusable(): boolean {
    return this.#isReusable
  }

  /** Cost of the finished response; undefined if it has no price. */
  get cost(): number | undefined {
    return this.#cost
  }

  /** The cost of a request includes what its failed attempts cost. */
  #addLost(end: ResponseEnd): void {
    if (end === 'error') setLogField(this.#exchange, 'proxy.ai.usage.cost.total', (this.#cost = this.#lostUsd))
    else if (this.#cost !== undefined) this.#cost += this.#lostUsd
  }

  #settle(budgets: TokenBudgets, facts: ResponseFacts | StreamFacts | undefined, end: ResponseEnd): void {
    if (end === 'error') return budgets.settle(this.#lostTokens, this.#lostUsd)
    const { input, output, isCounted } = this.#tokensOf(facts, end)
    const request = this.#request
    const price = this.#priceFound ?? request?.prices.find(request.system, request.requestModel)
    const hasPrice = this.#cost !== undefined && (isCounted || price?.units !== undefined)
    const usd = hasPrice ? this.#cost : price && priceOf(input, output, price)
    // What was reserved is the most that such a response is known to cost.
    const isOpen = !isCounted && request?.isBackground === true
    budgets.settle(isOpen ? Number.NaN : input + output + this.#lostTokens, usd === undefined ? usd : usd + this.#lostUsd)
  }

  /** Prices by the model of the response, else by the requested one (llm.md §18). */
  #price(facts: ResponseFacts): void {
    const request = this.#request
    if (request === undefined) return
    const { prices, system } = request
    const price = prices.find(system, facts.responseModel, request.requestModel)
    const priced = price && costOf(facts, price)
    const { priceLookups } = llmMetrics(this.#registry)
    if (price === undefined) return void priceLookups(prices.isEmpty ? 'noCatalog' : 'missing').value++
    priceLookups(priced === undefined ? 'unpriced' : 'exact').value++
    this.#priceFound = price
    this.#cost = priced?.cost
    this.#costRates = priced?.rates
  }

  #measure(facts: ResponseFacts | undefined, end: ResponseEnd, failure: string | undefined): void {
    const request = this.#request
    if (request === undefined) return
    const exchange = this.#exchange
    const { system, requestModel } = request
    const operation = this.#purpose ?? request.operation
    const labels = { operation, system, requestModel, responseModel: facts?.responseModel, errorType: failure ?? this.#errorTypeOf(end) }
    const series = llmMetrics(this.#registry).seriesOf(exchange, labels, end !== 'error')
    series.duration.observe((this.#endedAtMs - exchange.startedAtMs) / 1000)
    if (facts === undefined || end === 'error') return
    const { inputTokens, outputTokens, cachedInputTokens, cacheCreationInputTokens } = facts.usage
    if (inputTokens !== undefined) series.input().observe(inputTokens)
    if (outputTokens !== undefined) series.output().observe(outputTokens)
    if (cachedInputTokens !== undefined) series.cacheRead().observe(cachedInputTokens)
    if (cacheCreationInputTokens !== undefined) series.cacheWrite().observe(cacheCreationInputTokens)
    if (this.#cost !== undefined) {
      setLogField(exchange, 'proxy.ai.usage.cost.total', this.#cost)
      series.cost().value += this.#cost
    }
    const first = this.#firstTokenSeconds()
    if (first === undefined) return
    const perToken = this.#perTokenSeconds()
    setLogField(exchange, 'proxy.ai.time_to_first_token', first)
    if (perToken !== undefined) setLogField(exchange, 'proxy.ai.time_per_output_token', perToken)
    series.firstToken().observe(first)
    if (perToken !== undefined) series.perToken().observe(perToken)
  }

  /** A response that fails has its head already: the exchange tells why. */
  #errorTypeOf(end: ResponseEnd): string {
    if (end === 'error') return ''
    const { error, cutBy, abortReason } = this.#exchange
    if (error !== undefined || cutBy === 'upstream' || cutBy === 'timeout') return reasonOf(this.#exchange)
    return end === 'complete' ? '' : abortReason !== undefined && cutBy !== 'shutdown' ? 'ClientClosed' : '_OTHER'
  }

  /**
   * Tokens to charge. A response may lack usage or have none that is credible: it was cut off, the client asked for none (`stream_options`),
   * or the upstream reports none. Prompt and text are estimated instead (llm.md §11.2). A prompt has tokens, and so has a text.
   */
  #tokensOf(
    facts: ResponseFacts | StreamFacts | undefined,
    end: ResponseEnd,
  ): { readonly input: number; readonly output: number; readonly isCounted: boolean } {
    const { inputTokens = 0, outputTokens = 0 } = facts?.usage ?? {}
    const isInputCounted = inputTokens > 0
    const isOutputCounted = end === 'complete' && outputTokens > 0
    const forwarded = isOutputCounted || facts === undefined ? 0 : 'textBytes' in facts ? tokensIn(facts.textBytes) : estimateTokens(textsOf(facts))
    return {
      input: isInputCounted ? inputTokens : (this.#request?.promptTokens() ?? 0),
      output: Math.max(outputTokens, forwarded),
      isCounted: isInputCounted && (isOutputCounted || (end === 'complete' && forwarded === 0)),
    }
  }

  #texts(): Texts | undefined {
    if (this.#readShown !== undefined) this.#shown = this.#readShown()
    this.#readShown = undefined
    return this.#shown
  }

  #firstTokenSeconds(): number | undefined {
    return this.#firstTokenAtMs === undefined ? undefined : round((this.#firstTokenAtMs - this.#exchange.startedAtMs) / 1000)
  }

  #perTokenSeconds(): number | undefined {
    const output = this.#response?.usage.outputTokens
    if (this.#firstTokenAtMs === undefined || output === undefined || output === 0 || this.#endedAtMs === 0) return undefined
    return round((this.#endedAtMs - this.#firstTokenAtMs) / 1000 / output)
  }

  /** The value of `llm.<key>` in expressions (llm.md §17.3); undefined if it is not known. */
  get(key: string): Stored {
    const request = this.#request
    const response = this.#response
    switch (key) {
      case 'streaming':
        return request?.isStreaming
      case 'requestedModel':
        return this.routed?.requested
      case 'target':
        return this.routed?.target
      case 'skipped':
        return this.routed?.skipped
      case 'modalities':
        return this.routed?.modalities
      case 'prices':
        return this.routed?.prices
      case 'promptTokens':
        return this.routed?.promptTokens ?? request?.promptTokens()
      case 'requestModel':
        return request?.requestModel
      case 'responseModel':
        return response?.responseModel
      case 'provider':
        return request?.system
      case 'prompt':
        return request?.prompt()
      case 'params':
        return request && fromJson(request.params)
      case 'completion':
        return this.#texts()?.completion
      case 'toolCalls':
        return this.#texts()?.toolCalls satisfies readonly ToolCallFact[] | undefined
      case 'serviceTier':
        return response?.serviceTier
      case 'countTokens':
        return response?.countTokens
      case 'timeToFirstToken':
        return toDuration(this.#firstTokenSeconds())
      case 'timePerOutputToken':
        return toDuration(this.#perTokenSeconds())
      case 'cost':
        return this.#cost
      case 'costRates':
        return this.#costRates
      default:
        return (usageKeys as readonly string[]).includes(key) ? response?.usage[key as keyof Usage] : undefined
    }
  }

  *keys(): Iterable<string> {
    for (const key of viewKeys) if (this.get(key) !== undefined) yield key
  }
}

const usageKeys = [
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'providerInputTokens',
  'providerTotalTokens',
  'cachedInputTokens',
  'cacheCreationInputTokens',
  'reasoningTokens',
  'inputImageTokens',
  'inputTextTokens',
  'inputAudioTokens',
  'outputImageTokens',
  'outputTextTokens',
  'outputAudioTokens',
  ...PRICED_UNITS,
] as const satisfies readonly (keyof Usage)[]

/** Members of `llm` in expressions. */
export const viewKeys = [
  ...'requestedModel target skipped modalities prices promptTokens'.split(' '),
  ...'streaming requestModel responseModel provider prompt params completion toolCalls serviceTier countTokens'.split(' '),
  ...'timeToFirstToken timePerOutputToken cost costRates'.split(' '),
  ...usageKeys,
]

/** A response that the client did not wait for. */
const withoutReport: ResponseFacts = { usage: {}, responseModel: undefined, serviceTier: undefined, countTokens: undefined, completion: [], toolCalls: [] }
/** Text and arguments of tools in a response. */
const textsOf = ({ completion, toolCalls }: Texts): string[] => [...completion, ...toolCalls.map((call) => call.arguments)]
const toDuration = (seconds: number | undefined): Duration | undefined => (seconds === undefined ? undefined : Duration.fromMs(seconds * 1000))
/** Rounds to microseconds. */
const round = (seconds: number): number => Math.round(seconds * 1e6) / 1e6
