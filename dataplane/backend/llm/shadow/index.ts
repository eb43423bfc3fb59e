import { captureLimits, capturedBodies } from '../../../request/exchange/captured-bodies.ts'
import { ProxyError } from '../../../request/exchange/error.ts'
import { Exchange, type Connection } from '../../../request/exchange/exchange.ts'
import { releaseBodies } from '../../../request/exchange/held.ts'
import { addTokenBudget } from '../../../request/exchange/token-budgets.ts'
import { BufferBody } from '../../../http/body.ts'
import { HeaderList } from '../../../http/headers.ts'
import type { ResponseHead } from '../../../http/message.ts'
import { setLogField } from '../../../observe/telemetry/access-log/access-log.ts'
import { ownRequests } from '../../../observe/telemetry/own-requests.ts'
import { returnsOnce } from '../../../net/upstream/loop.ts'
import { BudgetCharge, type ChargeContext } from '../../../policy/budgets/charge.ts'
import { compileSections } from '../../../policy/budgets/compile.ts'
import { Ledger } from '../../../policy/budgets/ledger.ts'
import type { PolicyState } from '../../../policy/state.ts'
import { runCooperatively } from '../../../runtime/cooperative.ts'
import type { Purpose } from '../accounting/record.ts'
import { printBytesInSteps } from '../common/json.ts'
import type { JsonObject } from '../common/types.ts'
import type { ModelShadow, ModelTable, ShadowTarget } from '../models/table.ts'
import { compare, sideOf, textOf } from './compare.ts'
import { chatPaths, copyBody, isCopied, lastQuestion, type CopiedFormat } from './copy.ts'
import { combine, questionOf, readWinner } from './judge.ts'
import { shadowMetrics } from './metrics.ts'
import { ShadowQueue } from './queue.ts'
import type { ComparedReply, Sampler } from './types.ts'

/** Bytes of the largest request that is copied. */
const MAX_COPY_BYTES = 1024 * 1024
/** Characters of each text that a comparison keeps, if the ledger stores bodies. */
const MAX_KEPT_TEXT = 16_384

/** Sends a request of the gateway's own through the path of all LLM requests. */
export type SendOwn = (exchange: Exchange, models: ModelTable, own: { readonly purpose: Purpose; onReply(reply: ComparedReply): void }) => Promise<ResponseHead>

/** A copy that waits. */
interface Sample {
  readonly shadow: ModelShadow
  readonly origin: Exchange
  readonly format: CopiedFormat
  readonly body: JsonObject
  readonly original: ComparedReply
  readonly bytes: number
}

/** A request of the gateway's own. */
interface OwnRequest {
  readonly origin: Exchange
  readonly format: CopiedFormat
  readonly bytes: readonly Buffer[]
  readonly purpose: Purpose
  readonly isStreaming: boolean
}

/** What came of a request of the gateway's own. */
interface Answer {
  readonly exchange: Exchange
  readonly reply: ComparedReply | undefined
  /** Why there is no complete response. */
  readonly error: string | undefined
  /** The budget of the shadow rejected it. */
  readonly rejected: 'budget' | 'price' | undefined
}

/**
 * Copies of requests for models with a shadow (llm.md §15.6). A copy is sent when the response to the client has ended, so that it neither delays nor
 * changes it, and its response is compared and discarded.
 */
export class Shadows implements Sampler {
  readonly #state: PolicyState
  readonly #random: () => number
  readonly #send: SendOwn
  readonly #queue: ShadowQueue<Sample>
  readonly #budgets = new WeakMap<ModelShadow, ChargeContext>()

  constructor({ state, random, send }: { readonly state: PolicyState; readonly random: () => number; readonly send: SendOwn }) {
    this.#state = state
    this.#random = random
    this.#send = send
    this.#queue = new ShadowQueue((sample) => this.#run(sample))
  }

  draws({ percent }: ModelShadow): boolean {
    return percent > 0 && this.#random() * 100 < percent
  }

  offer(shadow: ModelShadow, origin: Exchange, original: ComparedReply): void {
    const result = this.#offer(shadow, origin, original)
    if (result !== undefined) shadowMetrics(this.#state.registry).copies(shadow, result).value++
  }

  /** Why the request is not copied. */
  #offer(shadow: ModelShadow, origin: Exchange, original: ComparedReply): string | undefined {
    const { prepared, isComplete } = original
    const { draft, body, conversion } = prepared ?? {}
    const format = conversion?.entry.format
    if (!isComplete || body === undefined || !isCopied(format)) return 'incomplete'
    const bytes = Array.isArray(draft?.body) ? (draft.body as readonly Buffer[]).reduce((sum, piece) => sum + piece.length, 0) : Infinity
    if (bytes > MAX_COPY_BYTES) return 'size'
    const sample = { shadow, origin, format, body, original, bytes }
    return this.#queue.add(`${shadow.backend} ${shadow.model}`, shadow.concurrency, sample) ? undefined : 'queue'
  }

  async #run(sample: Sample): Promise<void> {
    const { shadow, origin, format, original } = sample
    const metrics = shadowMetrics(this.#state.registry)
    const body = copyBody(sample.body, format)
    if (typeof body === 'string') return void metrics.copies(shadow, 'state').value++
    const pieces = await runCooperatively(printBytesInSteps(body))
    const answer = await this.#ask(shadow, shadow.to, {
      origin,
      format,
      bytes: pieces,
      purpose: 'shadow',
      isStreaming: original.prepared?.isStreaming === true,
    })
    if (answer.rejected !== undefined) return void metrics.copies(shadow, answer.rejected).value++
    const { exchange, reply, error } = answer
    const found = await runCooperatively(compare(sample.body, original, error === undefined ? reply : undefined))
    const judged = error === undefined && reply !== undefined && shadow.judge !== undefined ? await this.#judge(sample, reply, found.isEqual) : undefined
    metrics.copies(shadow, error === undefined ? 'compared' : 'failed').value++
    for (const kind of found.differences) metrics.differences(shadow, kind).value++
    if (found.similarity !== null) metrics.similarity(shadow).observe(found.similarity)
    if (judged !== undefined) metrics.verdicts(shadow, judged.verdict).value++
    const { similarity, tools, sameMembers } = found
    const keepsTexts = captureLimits.get(this.#state.registry) !== undefined
    const sides = { original: { ...sideOf(original), json: found.json.original }, copy: { ...sideOf(reply, shadow.to.id), json: found.json.copy } }
    const comparison = {
      timeMs: this.#state.epochMs(),
      backend: shadow.backend,
      model: shadow.model,
      requestId: origin.requestId ?? null,
      ...sides,
      error: error ?? null,
      similarity,
      tools,
      sameMembers,
      verdict: judged?.verdict ?? null,
      judgeCost: judged?.cost ?? null,
      texts: keepsTexts ? { request: kept(questionIn(sample)), original: kept(textOf(original)), copy: kept(reply === undefined ? '' : textOf(reply)) } : null,
    }
    capturedBodies.set(exchange, { request: capturedBodies.get(exchange)?.request, response: JSON.stringify(comparison) })
    this.#record(exchange, shadow)
  }

  /** Asks the judge twice, with the responses in both orders. Equal responses need no judge. */
  async #judge(
    sample: Sample,
    reply: ComparedReply,
    isEqual: boolean,
  ): Promise<{ readonly verdict: ReturnType<typeof combine>; readonly cost: number | null } | undefined> {
    const { shadow, origin, original } = sample
    const { judge } = shadow
    if (judge === undefined) return undefined
    if (isEqual) return { verdict: 'Tie', cost: null }
    const texts = { rubric: judge.rubric, request: questionIn(sample) }
    const [own, other] = [textOf(original), textOf(reply)]
    const winners: ReturnType<typeof readWinner>[] = []
    let cost: number | null = null
    for (const [a, b] of [
      [own, other],
      [other, own],
    ] as const) {
      const question = questionOf({ ...texts, a, b })
      const answer = await this.#ask(shadow, judge.to, {
        origin,
        format: 'completions',
        bytes: [Buffer.from(JSON.stringify(question))],
        purpose: 'judge',
        isStreaming: false,
      })
      if (answer.rejected !== undefined) return undefined
      this.#record(answer.exchange, shadow)
      if (answer.reply?.cost !== undefined) cost = (cost ?? 0) + answer.reply.cost
      winners.push(answer.error === undefined ? readWinner(answer.reply?.texts.completion.join('').trim() ?? '') : undefined)
      if (winners.includes(undefined)) break
    }
    return { verdict: combine(winners[0], winners[1]), cost }
  }

  /** Sends a request within the budget and the timeout of the shadow, and reads its response to the end. */
  async #ask(shadow: ModelShadow, to: ShadowTarget, request: OwnRequest): Promise<Answer> {
    const exchange = ownExchange(request)
    exchange.deadlineAtMs = performance.now() + shadow.timeoutMs
    const timer = setTimeout(() => exchange.abort(new ProxyError('REQUEST_TIMEOUT')), shadow.timeoutMs)
    timer.unref()
    let reply: ComparedReply | undefined
    try {
      const charge = new BudgetCharge(this.#budgetOf(shadow), exchange)
      await charge.begin()
      addTokenBudget(exchange, charge)
      exchange.response = await this.#send(exchange, to.table, { purpose: request.purpose, onReply: (received) => void (reply = received) })
      await drain(exchange.response)
      const { status } = exchange.response
      const isGood = status >= 200 && status < 300 && reply?.isComplete === true && !exchange.isLocalAnswer
      return { exchange, reply, error: isGood ? undefined : status < 200 || status > 299 ? String(status) : 'Incomplete', rejected: undefined }
    } catch (error) {
      if (error instanceof ProxyError) exchange.error = error
      const code = error instanceof ProxyError ? error.code : undefined
      const rejected = code === 'BUDGET' || code === 'BUDGET_SHARE' ? 'budget' : code === 'BUDGET_PRICE' ? 'price' : undefined
      return { exchange, reply, error: exchange.abortReason !== undefined ? 'Timeout' : (exchange.error?.row.reason ?? 'Internal'), rejected }
    } finally {
      clearTimeout(timer)
      exchange.finishedAtMs = performance.now()
      releaseBodies(exchange)
    }
  }

  #budgetOf(shadow: ModelShadow): ChargeContext {
    let context = this.#budgets.get(shadow)
    if (context === undefined) {
      const { backend, model, budget, window } = shadow
      // The name of the counter outlives changes of the config.
      const budgets = compileSections([{ policy: `shadow ${backend}`, budgets: [{ name: model, limits: [{ usd: budget, window }] }] }])
      context = { budgets, ledger: Ledger.of(this.#state), state: this.#state, spent: new Map() }
      this.#budgets.set(shadow, context)
    }
    return context
  }

  #record(exchange: Exchange, { model }: ModelShadow): void {
    setLogField(exchange, 'proxy.ai.shadow.model', model)
    ownRequests.get(this.#state.registry)?.(exchange)
  }
}

/** No client is connected. */
const connection: Connection = { id: 0, bind: '', localAddress: '', localPort: 0, remoteAddress: '', remotePort: 0, tls: undefined, listener: undefined }

/** A request without anything of the client but what its body says: no credentials, no cookies, no identity. */
function ownExchange({ origin, format, bytes, isStreaming }: OwnRequest): Exchange {
  const headers = HeaderList.from([
    ['content-type', 'application/json'],
    ['accept', isStreaming ? 'text/event-stream' : 'application/json'],
    ...(format === 'messages' ? [['anthropic-version', '2023-06-01'] as const] : []),
  ])
  const exchange = new Exchange(
    connection,
    {
      method: 'POST',
      target: chatPaths[format],
      scheme: 'http',
      authority: '',
      version: 'HTTP/1.1',
      headers,
      body: new BufferBody([...bytes]),
      upgrade: undefined,
      acceptsTrailers: false,
      loop: returnsOnce(origin.request.loop),
    },
    performance.now(),
  )
  exchange.labels = origin.labels
  exchange.jsonLimits = origin.jsonLimits
  return exchange
}

/** Reads a response to its end; nothing is kept. */
function drain({ body }: ResponseHead): Promise<void> {
  if (body === undefined) return Promise.resolve()
  return new Promise((resolve, reject) => {
    body.start({ onData: () => {}, onBorrowed: () => false, onEnd: () => resolve(), onError: reject })
  })
}

const kept = (text: string): string => text.slice(0, MAX_KEPT_TEXT).toWellFormed()

const questionIn = ({ original, body }: Sample): string => lastQuestion(original.prepared?.conversion?.entry.flattenRequest(body) ?? [])
