import { toProxyFailure } from '../forward/failure.ts'
import type { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { isUnhealthy } from '../../net/callout/health.ts'
import type { ResponseHead } from '../../http/message.ts'
import { HeaderList } from '../../http/headers.ts'
import type { PolicyState } from '../../policy/state.ts'
import type { LlmRecord } from './accounting/record.ts'
import { causeOfError } from './causes/failure.ts'
import { causeOf } from './causes/index.ts'
import type { Cause, Verdict } from './causes/types.ts'
import { limitModel, recordOutcome } from './choice/candidates.ts'
import { blameOf, evictionOf } from './choice/eviction.ts'
import type { LlmTarget } from './choice/target.ts'
import type { StreamError, Target } from './common/types.ts'
import type { Prepared } from './request/chat.ts'
import { readErrorBody } from './response/failure.ts'

/** Headers in which the vendors' SDKs send a credential. */
const credentials = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key']
/** A response that the condition of a health policy matches, and that is no error. */
const unhealthy: Verdict = { cause: 'ServerError', scope: 'endpoint' }
/** Causes for which the same target fails again. */
const isLasting: ReadonlySet<Cause> = new Set(['Quota', 'Auth', 'ModelNotFound', 'ContextLength'])
/** Longest wait of a retry for a rate limit. */
const MAX_WAIT_MS = 60_000
const noHeaders = new HeaderList([])

interface FailuresOptions {
  readonly state: PolicyState
  /** The shortest eviction of a policy that sets none. */
  readonly backoffMs: number | undefined
  readonly record: LlmRecord
}

/** Why the attempts of one request failed: finds the cause, evicts the provider if it is to blame, and reports it (llm.md §15.4). */
export class Failures {
  readonly #exchange: Exchange
  readonly #options: FailuresOptions
  #last: Verdict | undefined

  constructor(exchange: Exchange, options: FailuresOptions) {
    this.#exchange = exchange
    this.#options = options
  }

  /** Why the current attempt failed. */
  get last(): Verdict | undefined {
    return this.#last
  }

  /** An attempt begins. */
  begin(): void {
    this.#last = undefined
  }

  /** Judges the response to an attempt by its status, and an error by its body too. Returns false if it failed. */
  async checkResponse(target: LlmTarget, prepared: Prepared, response: ResponseHead): Promise<boolean> {
    const exchange = this.#exchange
    const condition = target.destination.settings.health?.condition
    if (response.status < 400) {
      const isFailed = isUnhealthy(exchange, response, condition)
      if (isFailed) this.#fail(target, prepared, unhealthy, response)
      return !isFailed
    }
    const body = await readErrorBody(exchange, response)
    this.#fail(target, prepared, causeOf(apiOf(target, prepared), response.status, response.headers, body, this.#options.state.epochMs()), response)
    return false
  }

  /** Records an attempt that failed with an error of the gateway. `isFirstToken`: its limit was that of the first content. */
  failWith(target: LlmTarget, prepared: Prepared, error: unknown, isFirstToken: boolean): void {
    const verdict = causeOfError(apiOf(target, prepared), toProxyFailure(error), this.#options.state.epochMs())
    if (verdict !== undefined)
      this.#fail(target, prepared, verdict.cause === 'Timeout' && isFirstToken ? { ...verdict, cause: 'FirstToken' } : verdict, undefined)
  }

  /** Records an error that a target sent in a response with status 200. */
  failAfterHead(target: LlmTarget, prepared: Prepared, error: StreamError): void {
    this.#fail(target, prepared, causeOf(apiOf(target, prepared), 200, noHeaders, error, this.#options.state.epochMs()), undefined)
  }

  /** Records an error of the gateway while it prepared the attempt: it is no failure of the provider's, but another target may have none. */
  failBefore(target: LlmTarget | undefined, error: ProxyError): void {
    if (this.#last !== undefined || this.#exchange.abortReason !== undefined) return
    const verdict = causeOfError('compatible', error, this.#options.state.epochMs())
    this.#last = verdict
    if (verdict !== undefined && target !== undefined) this.#options.record.failAttempt(target.name, verdict.cause, undefined)
  }

  /** Records a complete response that another target is to replace. */
  failWithReply(target: LlmTarget, prepared: Prepared, verdict: Verdict): void {
    this.#fail(target, prepared, verdict, undefined)
  }

  /** Whether a retry may succeed. `hasOther`: it goes to another target. */
  canRetry(hasOther: boolean): boolean {
    const verdict = this.#last
    if (verdict === undefined) return true
    // Another model may write what this one refuses: that is for the config to decide, not for a retry.
    if (verdict.cause === 'ContentFilter') return false
    if (hasOther) return true
    return !isLasting.has(verdict.cause) && verdict.shouldRetry !== false && this.waitMs(false) <= this.#longestWaitMs()
  }

  /** Time until the target accepts requests again; 0 if another one is next. */
  waitMs(hasOther: boolean): number {
    return !hasOther && this.#last?.cause === 'RateLimit' ? (this.#last.retryAfterMs ?? 0) : 0
  }

  #longestWaitMs(): number {
    const { deadlineAtMs } = this.#exchange
    return Math.min(MAX_WAIT_MS, deadlineAtMs === undefined ? Infinity : deadlineAtMs - performance.now())
  }

  #fail(target: LlmTarget, { model }: Prepared, verdict: Verdict, response: ResponseHead | undefined): void {
    // Once for each attempt; a client that disconnects is no failure of the target.
    if (this.#last !== undefined || this.#exchange.abortReason !== undefined) return
    this.#last = verdict
    const { record, state, backoffMs } = this.#options
    record.failAttempt(target.name, verdict.cause, response?.status)
    const step = this.#exchange.trace?.steps.findLast(({ kind }) => kind === 'upstream')
    if (step !== undefined) step.detail = { ...step.detail, cause: verdict.cause }
    const { health, auth } = target.destination.settings
    const hasClientCredential = auth?.kind === 'passthrough' || (auth === undefined && credentials.some((name) => this.#exchange.request.headers.has(name)))
    const blamed = blameOf({ hasOwnModel: target.provider.model !== undefined, hasClientCredential }, verdict)
    // A rollout is about the target: also for a model that the target names, unlike the health of the provider.
    if (blameOf({ hasOwnModel: record.routed?.isNamed === true || target.provider.model !== undefined, hasClientCredential }, verdict) !== undefined)
      record.blameTarget()
    if (blamed === undefined) return
    if (response !== undefined && health?.condition !== undefined && !isUnhealthy(this.#exchange, response, health.condition)) return
    const eviction = evictionOf(health, verdict, backoffMs)
    if (blamed === 'provider') recordOutcome(target.state, false, undefined, eviction, state.monotonicMs(), response?.status)
    else if (eviction !== undefined && model !== undefined) limitModel(target.state, model, state.monotonicMs() + eviction.durationMs)
  }
}

/** The API whose errors a target sends. */
function apiOf({ provider }: LlmTarget, { conversion, model }: Prepared): Target {
  return provider.targetOf(conversion?.with.to ?? 'completions', model ?? '')
}
