import { callEndpoint, type Active } from '../forward/attempt.ts'
import { releasePending, withRetries } from '../forward/retry.ts'
import { toProxyFailure } from '../forward/failure.ts'
import { ProxyError, retryAfter } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { BodyTooLargeError } from '../../http/body.ts'
import type { ResponseHead } from '../../http/message.ts'
import type { PolicyState } from '../../policy/state.ts'
import { setProtocol } from '../../observe/telemetry/outcome.ts'
import type { CallPlan } from '../forward/call-plan.ts'
import { UpstreamError } from '../../net/upstream/types.ts'
import type { AttemptContext } from './response/attempt-context.ts'
import { BodyCapture } from './response/capture.ts'
import { CacheRecording, cacheQueryOf, findCached, replay } from './response/cache.ts'
import type { ResponseCache } from './response/cache-store.ts'
import { readErrorBody } from './response/failure.ts'
import { asGeminiList } from './response/gemini-list.ts'
import { finishResponse, isStream, openStream, readReply, type Opened, type Reply } from './response/finish.ts'
import { chooseCandidate, explainCandidate, explainNoCandidate, firstReturnMs, hasLimits, hasOther, recordOutcome } from './choice/candidates.ts'
import { checkCompletionsHead, checkGuarded } from './request/admission.ts'
import { prepareChat, type Prepared } from './request/chat.ts'
import { causeOfReply, causeOfStop, stopOf } from './causes/reply.ts'
import type { Cause, Verdict } from './causes/types.ts'
import { setErrorFormat } from './errors.ts'
import { Failures } from './failures.ts'
import { lacksResponses, learnFormat, learnMissing, mayLackResponses } from './missing-api.ts'
import { LlmHooks } from './hooks/index.ts'
import { withTools } from './common/stops.ts'
import { FormatError, type Conversion, type ResponseFacts, type Stop, type StreamError } from './common/types.ts'
import { allowAll, denyAll, type KeyBudgets, type KeyPolicy } from './request/keys.ts'
import { filledText } from './common/read.ts'
import { modelAt } from './models/fit.ts'
import { chooseModel, respondWithList } from './models/route.ts'
import type { ModelChoice } from './models/choice.ts'
import type { ModelTable } from './models/table.ts'
import { respondWithProviderModels } from './request/models.ts'
import { callPool } from './request/pool.ts'
import { prepareRaw } from './request/raw.ts'
import { LlmRecord, type Purpose } from './accounting/record.ts'
import type { ComparedReply, Sampler } from './shadow/types.ts'
import { entryOf } from './request/shape.ts'
import { RequestSource } from './request/source.ts'
import type { LlmTarget } from './choice/target.ts'
import { buildUpstreamRequest } from './request/upstream-request.ts'
import { backendTransformation } from '../../request/transformation/backend.ts'

interface LlmCallOptions {
  readonly groups: readonly (readonly LlmTarget[])[]
  /** The models of a backend with `ai.models`, which has no groups. */
  readonly models: ModelTable | undefined
  readonly state: PolicyState
  readonly budgets: KeyBudgets
  readonly cache: ResponseCache
  readonly random: () => number
  /** Largest request or response body that is read into memory, in bytes. */
  readonly limitBytes: number
  /** Takes copies of requests for comparisons. */
  readonly sampler?: Sampler
  /** A request of the gateway's own, with the function that receives its response. */
  readonly own?: { readonly purpose: Purpose; onReply(reply: ComparedReply): void }
}

/** One attempt that reached a provider. */
interface Attempted {
  readonly target: LlmTarget
  readonly prepared: Prepared
  readonly startedAtMs: number
  readonly isHealthy: boolean
  /** The limit until the first content is `firstTokenTimeout`. */
  readonly isFirstToken: boolean
  /** The part of the response that was read already. */
  readonly opened: Opened | undefined
}

/** One request to an LLM backend: makes attempts until one succeeds, then returns its response in the client's format (llm.md §2). */
export class LlmCall {
  readonly #exchange: Exchange
  readonly #plan: CallPlan
  readonly #context: LlmCallOptions
  readonly #source: RequestSource
  readonly #record: LlmRecord
  readonly #hooks: LlmHooks | undefined
  /** Set if the ledger stores bodies. */
  readonly #capture: BodyCapture | undefined
  #prepared: Prepared | undefined
  #keys: KeyPolicy = denyAll
  readonly #active: Active = { call: undefined }
  #failed: LlmTarget | undefined
  /** The targets of the request, if the backend has models. */
  #choice: ModelChoice | undefined
  #attempted: Attempted | undefined
  readonly #failures: Failures
  /** The response is the gateway's own: a guard's rejection, a list of models, a token count. */
  #isLocal = false
  /** A request was sent to a provider, which has not reported what it used. */
  #isSent = false
  /** The response comes from the cache. */
  #isCached = false
  #recording: CacheRecording | undefined
  /** The response is compared. */
  #isCompared: boolean

  constructor(exchange: Exchange, plan: CallPlan, context: LlmCallOptions) {
    this.#exchange = exchange
    this.#plan = plan
    this.#context = context
    this.#source = new RequestSource(exchange, context.limitBytes)
    this.#record = new LlmRecord(exchange, context.state.registry, context.own?.purpose)
    this.#hooks = LlmHooks.of(exchange)
    this.#capture = BodyCapture.of(exchange, context.state.registry)
    this.#isCompared = context.own !== undefined
    if (context.own !== undefined) this.#report((reply) => context.own?.onReply(reply))
    this.#failures = new Failures(exchange, { state: context.state, record: this.#record, backoffMs: plan.retry?.backoffMs })
  }

  async run(): Promise<ResponseHead> {
    const exchange = this.#exchange
    setProtocol(exchange, 'llm')
    exchange.onAbort((reason) => {
      this.#active.call?.cancel(reason)
      this.#source.cancel(reason)
      this.#recording?.stop()
    })
    try {
      this.#keys = this.#context.budgets.apply(exchange)
      const response = await withRetries(exchange, this.#plan.retry, (_, isLast) => this.#attempt(isLast), {
        canRetry: (outcome) => this.#canRetry(outcome),
        waitMs: () => this.#failures.waitMs(this.#hasOther()),
        ...(this.#context.models && { fallBack: (outcome) => this.#fallBack(outcome) }),
      })
      if (this.#isLocal) {
        exchange.isLocalAnswer = true
        return response
      }
      const finished = asGeminiList(exchange, this.#prepared, this.#isCached ? response : await this.#finish(response))
      this.#recordResponse(finished)
      if (this.#prepared !== undefined) await this.#capture?.response(finished, this.#prepared)
      this.#keys.addHeaders(finished.headers)
      this.#record.addHeaders(finished.headers)
      return finished
    } catch (error) {
      this.#recording?.stop()
      const failure = toLlmError(error)
      // The provider works for a client that has left before the response: its prompt is charged.
      if (this.#isSent && exchange.abortReason !== undefined) this.#record.finish(undefined, 'partial')
      else this.#record.fail(toProxyFailure(failure).row.reason)
      this.#source.cancel(error instanceof Error ? error : new Error('the request failed'))
      throw failure
    }
  }

  #canRetry(outcome: ResponseHead | Error): boolean {
    return this.#canRepeat(outcome) && this.#failures.canRetry(this.#hasOther())
  }

  #canRepeat(outcome: ResponseHead | Error): boolean {
    if (this.#isLocal || this.#isCached || !this.#source.isReplayable) return false
    return !(outcome instanceof Error && outcome.cause instanceof BodyTooLargeError)
  }

  /** Goes on with the target that the first fallback for the cause of the failure names (llm.md §15.4). */
  #fallBack(outcome: ResponseHead | Error): boolean {
    const { deadlineAtMs, tokenBudgets } = this.#exchange
    const cause = this.#failures.last?.cause
    if (cause === undefined || cause === 'Invalid' || !this.#canRepeat(outcome)) return false
    if (deadlineAtMs !== undefined && deadlineAtMs <= performance.now()) return false
    if (this.#choice?.next(cause) === undefined) return false
    tokenBudgets?.reopen()
    return true
  }

  /** Whether another target is left, for the cause of the failure if there is one. */
  #hasFallback(cause?: Cause): boolean {
    return this.#choice !== undefined && cause !== 'Invalid' && this.#choice.hasFallback(cause)
  }

  #hasOther(): boolean {
    return hasOther(this.#groups, this.#context.state.monotonicMs(), this.#failed)
  }

  /** The providers in priority order: of the target, if the backend has models. */
  get #groups(): LlmCallOptions['groups'] {
    return this.#choice === undefined ? this.#context.groups : (this.#choice.current?.groups ?? [])
  }

  async #attempt(isLast: boolean): Promise<ResponseHead> {
    try {
      return await this.#tryOne(isLast)
    } catch (error) {
      const failure = toProxyFailure(toLlmError(error))
      if (this.#choice !== undefined) this.#failures.failBefore(this.#failed, failure)
      throw failure
    }
  }

  async #tryOne(isLast: boolean): Promise<ResponseHead> {
    const exchange = this.#exchange
    this.#attempted = undefined
    this.#failures.begin()
    this.#recording?.stop()
    this.#recording = undefined
    // Drop the transformation of the previous attempt's provider.
    backendTransformation.set(exchange, undefined)
    const { models, state, random } = this.#context
    const front = models?.routeOf(exchange.request.target, exchange.request.method)
    if (models !== undefined && front !== undefined) {
      setErrorFormat(exchange, front.type)
      if (front.isDefault) checkCompletionsHead(exchange)
      if (front.type === 'Models') return this.#respond(respondWithList(models, exchange, this.#keys, front.modelId))
      if (this.#choice === undefined) this.#sample((this.#choice = await this.#chooseModel(models, front)))
    }
    const groups = this.#groups
    const modelOf = hasLimits(groups) ? await this.#modelOf(groups) : undefined
    const target = chooseCandidate(groups, state.monotonicMs(), random, this.#failed, modelOf)
    if (target === undefined) {
      const returnsMs = firstReturnMs(groups, state.monotonicMs())
      throw new ProxyError('NO_HEALTHY_BACKENDS', {
        detail: this.#choice === undefined ? explainNoCandidate(groups) : 'no target of the model exists',
        headers: returnsMs === undefined ? {} : retryAfter(returnsMs),
      })
    }
    const why = exchange.trace && explainCandidate(groups, target, this.#failed)
    this.#failed = target
    // The response side applies to every response from here on, including the gateway's own (traffic.md §5).
    backendTransformation.set(exchange, target.destination.settings.transformation)
    const { type: route, isDefault, modelId } = front ?? target.settings.routeOf(exchange.request.target, exchange.request.method)
    setErrorFormat(exchange, route)
    checkTarget(target)
    checkGuarded(target, route, exchange, this.#keys, this.#hooks !== undefined)
    if (isDefault) checkCompletionsHead(exchange)
    if (route === 'Models') return this.#respond(respondWithProviderModels(exchange, groups, this.#keys.isAllowed, modelId))
    exchange.tokenBudgets?.requireKeys()
    const entry = entryOf(route, exchange.request.target)
    const { limitBytes } = this.#context
    const context = {
      exchange,
      target,
      source: this.#source,
      record: this.#record,
      // Keys name models as clients do: that of a target is not theirs to name.
      keys: this.#choice === undefined ? this.#keys : allowAll,
      hooks: this.#hooks,
      limitBytes,
      lacksResponses: lacksResponses(target.state, state.monotonicMs()),
      isDefault,
      isOwn: this.#context.own !== undefined,
      model: this.#choice?.model,
      named: this.#choice?.named,
      requested: this.#choice?.requested,
    }
    const prepared = entry === undefined ? await prepareRaw(context, route) : await prepareChat(context, entry)
    if ('response' in prepared) return this.#respond(prepared.response)
    this.#prepared = prepared
    this.#capture?.request(prepared)
    const endpoint = target.destination.pick(exchange)
    if (endpoint === undefined) throw new ProxyError('NO_HEALTHY_BACKENDS', { detail: target.destination.explainNoEndpoint(exchange.request.authority) })
    if (prepared.isCharged && exchange.tokenBudgets !== undefined) await exchange.tokenBudgets.check(prepared.estimate, prepared.demand)
    const cached = await this.#lookUp(target, prepared)
    if (cached !== undefined) return cached
    const request = await buildUpstreamRequest(exchange, target, endpoint.label, prepared.draft, this.#context.limitBytes)
    const startedAtMs = performance.now()
    const firstContentMs = prepared.isStreaming
      ? leastOf(this.#plan.backendRequestMs, target.destination.settings.requestMs, target.settings.firstTokenMs)
      : undefined
    const limits = firstContentMs === undefined ? this.#plan : { backendRequestMs: firstContentMs }
    this.#isSent = true
    const call = { destination: target.destination, endpoint, request, load: target.state, why }
    const isFirstToken = firstContentMs !== undefined && firstContentMs === target.settings.firstTokenMs
    let isFailed = false
    const judge = (_: unknown, __: unknown, received: ResponseHead | undefined): void => void (isFailed = received === undefined)
    const calling =
      target.destination.hooks?.choose === undefined
        ? callEndpoint(exchange, call, limits, this.#active, judge)
        : callPool(exchange, call, limitBytes, (picked) => callEndpoint(exchange, picked, limits, this.#active, judge))
    const response = await calling.catch((error: unknown) => {
      if (isFailed) this.#failures.failWith(target, prepared, error, isFirstToken)
      throw error
    })
    if (prepared.conversion?.entry.format === 'responses' && (await this.#lacksResponses(target, prepared.conversion.with, response)))
      return this.#tryOne(isLast)
    const isHealthy = await this.#failures.checkResponse(target, prepared, response)
    const attempted: Attempted = { target, prepared, startedAtMs, isHealthy, isFirstToken, opened: undefined }
    this.#attempted = attempted
    const { conversion, isStreaming } = prepared
    if (conversion === undefined || response.status < 200 || response.status > 299) return response
    const untilMs = firstContentMs && startedAtMs + firstContentMs
    if (!isStreaming || !(await isStream(response, leastOf(untilMs, exchange.deadlineAtMs))))
      return this.#readReply(response, attempted, conversion.with, isLast)
    return isLast && firstContentMs === undefined && !this.#hasFallback() ? response : this.#peek(response, attempted, untilMs, isLast)
  }

  /** Whether the provider does not have the Responses API: the request is sent again, as Chat Completions (llm.md §5.1). */
  async #lacksResponses(target: LlmTarget, { to }: Conversion, response: ResponseHead): Promise<boolean> {
    const nowMs = this.#context.state.monotonicMs()
    learnFormat(target.state, to, response, nowMs)
    if (to !== 'responses' || !this.#source.isReplayable || !mayLackResponses(target, response.status, nowMs)) return false
    if (!target.provider.supports('responses', target.provider.model ?? '').includes('completions')) return false
    const body = await readErrorBody(this.#exchange, response)
    if (!learnMissing(target.state, response.status, body, nowMs)) return false
    releasePending(this.#exchange)
    response.body?.cancel()
    return true
  }

  #chooseModel(table: ModelTable, front: ReturnType<ModelTable['routeOf']>): Promise<ModelChoice> {
    const { random, state } = this.#context
    const tools = { exchange: this.#exchange, source: this.#source, keys: this.#keys, random, nowMs: state.monotonicMs }
    return chooseModel(table, front, { ...tools, onView: (view) => this.#record.setRouted(view) })
  }

  /** The model that each provider would be asked for; undefined if the body does not name it, or is not interpreted. */
  async #modelOf(groups: LlmCallOptions['groups']): Promise<((candidate: LlmTarget) => string) | undefined> {
    const { target, method } = this.#exchange.request
    const choice = this.#choice
    const entry = entryOf(groups[0]?.[0]?.settings.routeOf(target, method).type ?? 'Passthrough', target)
    const own = choice !== undefined || entry === undefined ? undefined : await this.#source.parse().catch(() => undefined)
    const requested = choice?.named ?? filledText((own && entry?.address?.(own.json, target))?.['model'] ?? own?.json['model'])
    return requested === undefined ? undefined : (candidate) => modelAt({ model: choice?.model }, candidate, requested)
  }

  /** Draws whether the response is compared with that of the model's shadow. */
  #sample({ shadow }: ModelChoice): void {
    const { sampler } = this.#context
    if (shadow === undefined || sampler === undefined || !sampler.draws(shadow)) return
    this.#isCompared = true
    this.#report((reply) => sampler.offer(shadow, this.#exchange, reply))
  }

  #report(onReply: (reply: ComparedReply) => void): void {
    this.#record.onFinish = (outcome) => {
      const { prepared, opened } = this.#attempted ?? {}
      const upstream = opened !== undefined && 'reply' in opened ? opened.reply.upstream : undefined
      const { facts } = outcome
      const stop: Stop | undefined =
        facts !== undefined && 'stop' in facts ? facts.stop : upstream && prepared?.conversion ? stopOf(prepared.conversion.with.to, upstream) : undefined
      const hasTools = (facts?.toolCalls.length ?? 0) > 0
      onReply({ ...outcome, target: this.#choice?.current?.id ?? '', stop: outcome.isComplete ? withTools(stop, hasTools) : stop, prepared })
    }
  }

  /** The stored response to an equal request, after all checks of the request (llm.md §18.1). Without one, the response is recorded. */
  async #lookUp(target: LlmTarget, prepared: Prepared): Promise<ResponseHead | undefined> {
    if (target.settings.cache === undefined || this.#context.own !== undefined) return undefined
    const query = cacheQueryOf(this.#exchange, target, prepared)
    if (query === undefined) return void this.#record.missCache('bypass')
    const { cache, state } = this.#context
    const found = await findCached(cache, query, this.#exchange, state.epochMs)
    const response = found && (await replay(found, query, prepared, this.#exchange, state.epochMs()))
    if (response !== undefined) {
      this.#isCached = true
      this.#record.finishCached(found?.cost)
      return response
    }
    this.#record.missCache('miss')
    this.#recording = CacheRecording.start(cache, query, state.epochMs)
    return undefined
  }

  #recordResponse(response: ResponseHead): void {
    const opened = this.#attempted?.opened
    if (opened !== undefined && 'reply' in opened && !isFinal(opened.reply)) this.#recording?.stop()
    else this.#recording?.record(response, this.#record, this.#exchange)
  }

  /** Reads a buffered response. One that is not valid fails the attempt as a 502 of the provider would. */
  async #readReply(response: ResponseHead, attempted: Attempted, conversion: Conversion, isLast: boolean): Promise<ResponseHead> {
    const context = this.#attemptContext(attempted)
    try {
      const reply = await readReply(response, context, conversion)
      if (reply.isValid) {
        context.onEnd(true)
        const hasText = reply.facts.completion.some((text) => text !== '') || reply.facts.toolCalls.length > 0
        this.#checkStop(attempted, reply.upstream && causeOfReply(conversion.to, reply.upstream, hasText), reply.facts)
      } else {
        const error = new ProxyError('LLM_RESPONSE', { detail: `failed to parse response: it is no response of ${conversion.to}` })
        this.#failAttempt(attempted, error)
        if ((!isLast && this.#plan.retry?.codes.has(502) === true) || this.#hasFallback(this.#failures.last?.cause)) {
          this.#record.lose(reply.facts)
          throw error
        }
      }
      this.#attempted = { ...attempted, opened: { reply } }
      return response
    } catch (error) {
      if (error instanceof FormatError) this.#failAttempt(attempted, toLlmError(error))
      throw error
    }
  }

  /**
   * Waits for the first content of a stream. A stream that ends, reports an error or reaches `untilMs` before fails the attempt; nothing
   * was sent to the client yet. The last attempt fails at `untilMs` only, so that the client gets the error of the provider.
   */
  async #peek(response: ResponseHead, attempted: Attempted, untilMs: number | undefined, isLast: boolean): Promise<ResponseHead> {
    const events = openStream(response, this.#attemptContext(attempted))
    const hasContent = await events.peek(untilMs)
    const failure = events.failure instanceof ProxyError ? events.failure : undefined
    const { facts } = events
    if (hasContent && !facts.hasContent) {
      const verdict = causeOfStop(facts.stop, false)
      if (this.#isReplaced(attempted, verdict)) events.discard()
      this.#checkStop(attempted, verdict, facts)
    }
    // The gateway's own limit is no failure of the provider.
    if (failure !== undefined && failure.code !== 'HELD_BYTES') this.#failAttempt(attempted, failure)
    else if (failure === undefined && !hasContent) this.#failStream(attempted, facts.error)
    if (hasContent || (isLast && failure === undefined && !this.#hasFallback(this.#failures.last?.cause))) {
      this.#attempted = { ...attempted, opened: { events } }
      return response
    }
    if (this.#record.lose(facts)) this.#isSent = false
    events.discard()
    throw (
      failure ??
      new ProxyError('UPSTREAM_FAILED', {
        detail: 'the stream ended before its first content',
        cause: new UpstreamError('reset', 'the stream ended before its first content'),
      })
    )
  }

  /** Whether a fallback replaces a complete response. What a guardrail of the config blocked stays blocked. */
  #isReplaced({ target }: Attempted, verdict: Verdict | undefined): verdict is Verdict {
    if (verdict === undefined || (verdict.cause === 'ContentFilter' && target.provider.guardrail !== undefined)) return false
    return this.#source.isReplayable && this.#hasFallback(verdict.cause)
  }

  /** Fails the attempt if a fallback replaces its complete response, whose tokens were spent. */
  #checkStop(attempted: Attempted, verdict: Verdict | undefined, facts: ResponseFacts): void {
    if (!this.#isReplaced(attempted, verdict)) return
    this.#failures.failWithReply(attempted.target, attempted.prepared, verdict)
    this.#record.lose(facts)
    throw new ProxyError('LLM_RESPONSE', { detail: `the provider ended the response: ${verdict.cause}` })
  }

  /** Records a failure that the status of the response does not show. */
  #failAttempt({ target, prepared, isFirstToken }: Attempted, error: unknown): void {
    this.#failures.failWith(target, prepared, error, isFirstToken)
  }

  #failStream({ target, prepared }: Attempted, error: StreamError | undefined): void {
    this.#failures.failAfterHead(target, prepared, error ?? { type: 'api_error', message: '' })
  }

  #finish(response: ResponseHead): Promise<ResponseHead> | ResponseHead {
    const attempted = this.#attempted
    return attempted === undefined ? response : finishResponse(response, this.#attemptContext(attempted), attempted.opened)
  }

  #attemptContext(attempted: Attempted): AttemptContext {
    const { target, prepared, startedAtMs, isHealthy } = attempted
    return {
      exchange: this.#exchange,
      target,
      prepared,
      record: this.#record,
      limitBytes: this.#context.limitBytes,
      isCompared: this.#isCompared,
      onEnd: (isComplete) => {
        if (isHealthy && isComplete) this.#recordSuccess(target, (performance.now() - startedAtMs) / 1000)
      },
      onFailure: (error) => this.#failStream(attempted, error),
    }
  }

  #respond(response: ResponseHead): ResponseHead {
    this.#isLocal = true
    this.#record.fail(String(response.status))
    return response
  }

  #recordSuccess({ state }: LlmTarget, seconds: number): void {
    recordOutcome(state, true, seconds, undefined, this.#context.state.monotonicMs())
  }
}

/** Whether a reply is valid and, in the Responses API, complete. */
function isFinal({ isValid, body }: Reply): boolean {
  const { status, error } = body
  return isValid && (status === undefined || status === 'completed') && (error === undefined || error === null)
}

/** The least of the limits that are set. */
function leastOf(...limits: readonly (number | undefined)[]): number | undefined {
  const least = Math.min(...limits.map((limit) => limit ?? Infinity))
  return least === Infinity ? undefined : least
}

function checkTarget({ destination: { error, settings } }: LlmTarget): void {
  if (error !== undefined) throw new ProxyError(error)
  if (settings.broken !== undefined) throw new ProxyError('UPSTREAM_FAILED', { detail: settings.broken })
}

/** Maps errors about unusable bodies to errors of the request or of the response (llm.md §10). */
function toLlmError(error: unknown): unknown {
  if (error instanceof FormatError) return new ProxyError(error.kind === 'response' ? 'LLM_RESPONSE' : 'LLM_REQUEST', { detail: error.message, cause: error })
  // Deeply nested JSON exhausts the stack.
  if (error instanceof RangeError) return new ProxyError('LLM_REQUEST', { detail: 'failed to parse request: nested too deeply', cause: error })
  return error
}
