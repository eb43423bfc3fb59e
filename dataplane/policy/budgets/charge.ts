import { USD_UNITS, type CompiledLimit } from '#api/budget-limit.ts'
import { CelError, evalCondition, evalKey, isAbsence, type Program } from '#api/cel/index.ts'
import { ProxyError } from '../../request/exchange/error.ts'
import type { Exchange } from '../../request/exchange/exchange.ts'
import { DEFAULT_OUTPUT_TOKENS, type LlmDemand, type TokenBudget } from '../../request/exchange/token-budgets.ts'
import { ExchangeView } from '../../request/expression/view.ts'
import { setLogField } from '../../observe/telemetry/access-log/access-log.ts'
import type { Series } from '../../observe/telemetry/metrics/registry.ts'
import type { Allowance } from '../rate-limit/bucket.ts'
import { headersOf } from '../rate-limit/headers.ts'
import { tighter } from '../rate-limit/local.ts'
import type { PolicyState } from '../state.ts'
import type { BudgetSharing, CompiledBudget } from './compile.ts'
import type { StoreKind } from './counter-store.ts'
import { toAmount, type Counter, type Reservation } from './counter.ts'
import type { CounterKind, Ledger } from './ledger.ts'
import { budgetMetrics } from './metrics.ts'
import { QuotaCounter } from './quota.ts'
import { RemoteCounter } from './remote-counter.ts'
import { RemoteBudgets, type RemoteReservation } from './remote.ts'
import { amountOf, isUsedUp, lacksPrice, toAllowance, type Usage } from './limits.ts'
import { ShareCounter } from './share.ts'

/** A request waits so long for units of a budget that other replicas hold. */
const WAIT_MS = 1000

export interface ChargeContext {
  readonly budgets: readonly CompiledBudget[]
  readonly ledger: Ledger
  readonly state: Pick<PolicyState, 'epochMs' | 'registry' | 'log' | 'shares' | 'quotas'>
  /** What was charged to each limit, once something was. */
  readonly spent: Map<CompiledLimit, Series>
}

/** A budget that applies. */
interface Applied {
  readonly budget: CompiledBudget
  /** Key of the request. */
  readonly key: string | undefined
  /** Whether the request itself is charged already. */
  isCharged: boolean
  /** Whether the usage of an LLM request is reserved already. */
  isReserved: boolean
}

/** A reservation that is to be made. */
interface Wanted {
  readonly budget: CompiledBudget
  readonly key: string | undefined
  readonly limit: CompiledLimit
  readonly amount: number
  readonly isUnpriced: boolean
}

/** A reservation that is to be settled. */
interface Held {
  readonly budget: CompiledBudget
  readonly limit: CompiledLimit
  readonly counter: Counter
  readonly reservation: Reservation | RemoteReservation
  /** Whether the request counts as spent already. */
  isSpent: boolean
}

/**
 * What one request is charged to (traffic.md §8.14). Requests are charged when the policy runs; tokens and dollars are reserved when the
 * LLM request is known, and corrected at its end.
 */
export class BudgetCharge implements TokenBudget {
  readonly #context: ChargeContext
  readonly #view: ExchangeView
  readonly #exchange: Exchange
  #held: Held[] = none
  #applied: Applied[] = none
  /** Budgets of the models of targets that failed. */
  #left: readonly Applied[] = none
  /** Why the request cannot be charged; thrown if it turns out to be none that costs nothing. */
  #missingKey: ProxyError | undefined
  /** The model that replaces the one of the request, once a budget was exceeded. */
  #replacement: string | undefined
  /** The tightest limit of requests or tokens. */
  allowance: Allowance | undefined
  /** The least that is left of the budgets in dollars whose rest is exposed, in units of a counter. */
  #remainingUsd: number | undefined

  constructor(context: ChargeContext, exchange: Exchange) {
    this.#context = context
    this.#exchange = exchange
    this.#view = new ExchangeView(exchange)
  }

  /** Charges the budgets that do not depend on the model; later only if a share of this replica is too small. Throws a ProxyError to reject. */
  begin(): void | Promise<void> {
    const { request, picked } = this.#exchange
    try {
      for (const budget of this.#context.budgets) if (budget.models === undefined) this.#apply(budget)
    } catch (error) {
      if (!(error instanceof ProxyError) || picked?.service?.current?.isFree?.(request) !== true) throw error
      this.#missingKey = error
    }
    return this.#reserve()
  }

  check(estimate: number, demand?: LlmDemand): void | Promise<void> {
    this.requireKey()
    for (const budget of this.#context.budgets) if (this.#matchesModel(budget)) this.#apply(budget)
    const priceOf = demand?.priceOf
    if (priceOf === undefined) this.#requirePrice(demand?.model)
    return this.#reserve({
      input: Math.max(estimate, demand?.promptTokens ?? 0),
      output: (demand?.maxTokens ?? DEFAULT_OUTPUT_TOKENS) * (demand?.answers ?? 1),
      priceOf,
    })
  }

  /** Charges the budgets that apply to the model of a further attempt, and not to those before. */
  checkAgain(demand: LlmDemand | undefined): void | Promise<void> {
    const { length } = this.#applied
    for (const budget of this.#context.budgets) if (this.#matchesModel(budget)) this.#apply(budget)
    return this.#applied.length === length ? undefined : this.check(0, demand)
  }

  requireKey(): void {
    if (this.#missingKey !== undefined) throw this.#missingKey
  }

  /** Rejects a request without a price if a budget needs one. */
  #requirePrice(model: string | undefined): void {
    const needing = this.#applied.find(({ budget }) => !budget.allowsUnpriced && budget.limits.some(({ unit }) => unit === 'usd'))
    if (needing === undefined) return
    this.#release()
    throw new ProxyError('BUDGET_PRICE', { detail: `budget "${needing.budget.name}" needs a price of ${model ?? 'the model'} (ai.prices, ai.priceCatalog)` })
  }

  settle(tokens: number, usd?: number): void {
    let remote: (Remote & { readonly used: number })[] | undefined
    for (const held of this.#takeHeld()) {
      const { budget, limit, counter, reservation } = held
      const { unit } = limit
      if (unit === 'requests') continue
      // What is not known stays charged as it was estimated.
      const actual = unit === 'tokens' ? tokens : usd === undefined ? Number.NaN : toAmount(usd * USD_UNITS)
      const spent = Number.isNaN(actual) ? reservation.taken : actual
      if (isRemote(held)) {
        this.#count(budget, limit, spent)
        ;(remote ??= []).push({ ...held, used: spent })
        continue
      }
      counter.spend(reservation.index, spent)
      const used = counter.settle(reservation.index, spent - reservation.taken)
      this.#count(budget, limit, spent)
      if (used !== undefined) this.#alert(budget, limit, counter, reservation.index, used)
    }
    if (remote !== undefined) for (const [kind, settled] of byStore(remote)) void this.#settleRemote(kind, settled)
  }

  reopen(): void {
    this.settle(0, 0)
    for (const applied of this.#applied) applied.isReserved = false
    // Those of models apply to the next one only if it matches, and count the request once.
    this.#left = this.#applied.filter(({ budget }) => budget.models !== undefined)
    this.#applied = this.#applied.filter(({ budget }) => budget.models === undefined)
    this.#replacement = undefined
  }

  /** What is reserved, which others settle from here on. */
  #takeHeld(): readonly Held[] {
    const held = this.#held
    this.#held = none
    return held
  }

  async #settleRemote(kind: StoreKind, settled: readonly (Remote & { readonly used: number })[]): Promise<void> {
    const amounts = await RemoteBudgets.of(this.#context.state, kind).settle(settled)
    for (const [nth, { budget, limit, counter, reservation }] of settled.entries()) {
      const amount = amounts?.[nth]
      if (amount !== undefined) this.#alert(budget, limit, counter, reservation.index, amount)
    }
  }

  replacement(): string | undefined {
    if (this.#replacement !== undefined) return this.#replacement
    for (const budget of this.#context.budgets) {
      const { onExceeded } = budget
      if (typeof onExceeded === 'string' || (budget.models !== undefined && !this.#matchesModel(budget))) continue
      const key = this.#keyOf(budget)
      const isExceeded = budget.limits.some(
        (limit) =>
          // A request without `models` was charged to limits of requests before.
          (limit.unit !== 'requests' || budget.models !== undefined) && isUsedUp(this.#counter(budget, limit, key), limit, this.#context.ledger.epochMs()),
      )
      if (isExceeded) return (this.#replacement = onExceeded.model)
    }
    return undefined
  }

  /** Dollars that are left, for a header; undefined: none is exposed. */
  get remainingUsd(): string | undefined {
    return this.#remainingUsd === undefined ? undefined : String(Math.max(0, Math.floor(this.#remainingUsd)) / USD_UNITS)
  }

  #apply(budget: CompiledBudget): void {
    if (this.#applied.some((other) => other.budget === budget)) return
    const key = this.#keyOf(budget)
    if (key === undefined && budget.key !== undefined) {
      if (budget.ignoresMissingKey && this.#isKeyAbsent(budget.key)) return
      throw new ProxyError('BUDGET_KEY', { detail: `the request has no key for budget "${budget.name}"` })
    }
    const left = this.#left.find((other) => other.budget === budget && other.key === key)
    this.#applied = append(this.#applied, left ?? { budget, key, isCharged: false, isReserved: false })
    for (const ancestor of budget.ancestors) this.#apply(ancestor)
  }

  #keyOf({ key }: CompiledBudget): string | undefined {
    return key === undefined ? undefined : evalKey(key, this.#view)
  }

  /** Null, or an expression that does not compile or reads a value that is absent. Another failure may be what a client sends to evade the budget. */
  #isKeyAbsent(key: Program): boolean {
    const value = key.eval(this.#view)
    return value === null || (value instanceof CelError && (isAbsence(value) || value.code === 'invalid'))
  }

  /** An expression that fails counts as true, so that nobody evades a budget by it. */
  #matchesModel({ models }: CompiledBudget): boolean {
    return models !== undefined && evalCondition(models, this.#view) !== false
  }

  #counter({ sharing }: CompiledBudget, limit: CompiledLimit, key: string | undefined): Counter {
    const by = sharing?.by ?? 'own'
    return this.#context.ledger.find(limit.name, key, limit.windows, this.#kindOf(by))
  }

  #kindOf(by: BudgetSharing['by'] | 'own'): CounterKind {
    const { shares, quotas } = this.#context.state
    if (by === 'operator') return shares === undefined ? 'own' : 'shared'
    if (by === 'service') return quotas === undefined ? 'own' : 'assigned'
    return by
  }

  /** Reserves from all limits that apply: those of requests, and for an LLM request those of its usage. If one rejects, everything that this request holds is returned. */
  #reserve(usage?: Usage): void | Promise<void> {
    const first = this.#held.length
    let later: Wanted[] | undefined
    let remote: Map<StoreKind, Wanted[]> | undefined
    for (const applied of this.#applied) {
      const { budget, key } = applied
      const by = budget.sharing?.by ?? 'operator'
      for (const limit of budget.limits) {
        const amount = amountOf(limit, applied, usage)
        if (amount === undefined) continue
        const wanted = { budget, key, limit, amount, isUnpriced: lacksPrice(limit, usage) }
        if (by !== 'operator' && by !== 'service') addTo((remote ??= new Map()), by, wanted)
        else if (later !== undefined || !this.#take(wanted)) (later ??= []).push(wanted)
      }
      applied.isCharged = true
      applied.isReserved ||= usage !== undefined
    }
    if (later === undefined && remote === undefined) return this.#countRequests(first)
    return this.#reserveLater(later, remote).then(() => this.#countRequests(first))
  }

  /** Reserves from limits whose shares are too small, then from those in stores. */
  async #reserveLater(later: readonly Wanted[] = [], remote: ReadonlyMap<StoreKind, readonly Wanted[]> = new Map()): Promise<void> {
    if (later.length > 0) await this.#takeLater(later)
    await this.#takeRemote(remote)
  }

  /** Reserves from limits in stores. */
  async #takeRemote(wanted: ReadonlyMap<StoreKind, readonly Wanted[]>): Promise<void> {
    for (const [kind, each] of wanted) await this.#takeFrom(kind, each)
  }

  /** Reserves from limits in one store, all at once. */
  async #takeFrom(kind: StoreKind, wanted: readonly Wanted[]): Promise<void> {
    const { state, ledger } = this.#context
    const nowMs = ledger.epochMs()
    const entries = wanted.flatMap((each) => {
      const counter = this.#counter(each.budget, each.limit, each.key)
      return counter instanceof RemoteCounter ? [{ ...each, counter }] : []
    })
    const outcome = await RemoteBudgets.of(state, kind).reserve(
      nowMs,
      entries.map(({ budget, limit, amount, counter, isUnpriced }) => {
        return { counter, limit: limit.amount, amount, isForced: isUnpriced || budget.onExceeded !== 'Reject', isSettled: limit.unit !== 'requests' }
      }),
    )
    if (outcome === undefined) return this.#takeAlone(wanted)
    for (const [nth, { budget, limit, counter, isUnpriced }] of entries.entries()) {
      const reservation = outcome.reservations[nth]
      if (reservation === undefined || (!outcome.isReserved && reservation.isAdmitted)) continue
      if (outcome.isReserved) this.#hold({ budget, limit, counter, reservation, isSpent: false })
      this.#note(limit, reservation, budget)
      if (!reservation.isAdmitted && !isUnpriced && (outcome.isReserved || budget.onExceeded === 'Reject')) this.#exceed(budget, limit, reservation, nowMs)
    }
  }

  /** The store cannot be used: the full budgets hold for this replica, if all of them permit it. */
  #takeAlone(wanted: readonly Wanted[]): void {
    const { registry } = this.#context.state
    const rejecting = wanted.find(({ budget }) => budget.sharing?.allowsDisconnected !== true)
    for (const { budget, limit } of rejecting === undefined ? wanted : [rejecting])
      budgetMetrics(registry).alone(rejecting === undefined ? 'admitted' : 'rejected', budget.policy, budget.name, limit.unit).value++
    if (rejecting === undefined) {
      for (const each of wanted) this.#take(each)
      return
    }
    this.#release()
    throw new ProxyError('BUDGET_SHARE', { detail: `budget "${rejecting.budget.name}" cannot be charged now` })
  }

  /** Reserves from one limit. Returns false if the share of this replica is too small. */
  #take({ budget, key, limit, amount, isUnpriced }: Wanted, how: 'share' | 'last' | 'alone' = 'share'): boolean {
    const counter = this.#counter(budget, limit, key)
    // Assignments end by the clock of the system.
    const nowMs = counter instanceof QuotaCounter ? this.#context.state.epochMs() : this.#context.ledger.epochMs()
    const terms = [nowMs, limit.amount, amount, isUnpriced ? 0 : 1, isUnpriced || budget.onExceeded !== 'Reject'] as const
    const reservation =
      how !== 'share' && counter instanceof ShareCounter
        ? counter.reserveWithout(how, ...terms)
        : how !== 'share' && counter instanceof QuotaCounter
          ? counter.reserveAlone(...terms)
          : counter.reserve(...terms)
    if (reservation.isShort === true) return false
    this.#note(limit, reservation, budget)
    if (!reservation.isAdmitted && !isUnpriced) this.#exceed(budget, limit, reservation, nowMs)
    this.#hold({ budget, limit, counter, reservation, isSpent: false })
    return true
  }

  #hold(held: Held): void {
    this.#held = append(this.#held, held)
  }

  async #takeLater(wanted: readonly Wanted[]): Promise<void> {
    try {
      for (const each of wanted) if (!this.#take(each)) await this.#await(each)
    } catch (error) {
      this.#release()
      throw error
    }
  }

  /** Asks for an assignment, or for a larger share until it covers the amount, for a second at most. */
  async #await(wanted: Wanted): Promise<void> {
    const { budget, key, limit } = wanted
    const { state, ledger } = this.#context
    const counter = this.#counter(budget, limit, key)
    const metrics = budgetMetrics(state.registry)
    metrics.waits(budget.policy, budget.name, limit.unit).value++
    let hasResponse: boolean | undefined = false
    const startMs = ledger.epochMs()
    while (counter instanceof ShareCounter && ledger.epochMs() - startMs < WAIT_MS) {
      hasResponse = await state.shares?.want(counter.bucketAt(ledger.epochMs(), ledger.namesOf(limit.name, key)), () => counter.memory)
      if (this.#take(wanted)) return
      if (hasResponse !== true) break
    }
    if (counter instanceof QuotaCounter && (await this.#assign(counter, wanted)) && this.#take(wanted)) return
    // Others hold what is left, and have not returned it in time.
    if (hasResponse === true) return void this.#take(wanted, 'last')
    const outcome = budget.sharing?.allowsDisconnected === true ? 'admitted' : 'rejected'
    metrics.alone(outcome, budget.policy, budget.name, limit.unit).value++
    if (outcome === 'admitted') return void this.#take(wanted, 'alone')
    if (counter instanceof QuotaCounter) counter.deny()
    throw new ProxyError('BUDGET_SHARE', { detail: `this replica has no share of budget "${budget.name}" now` })
  }

  /** Asks the rate limit quota service for an assignment. */
  async #assign(counter: QuotaCounter, { budget, key, limit }: Wanted): Promise<boolean> {
    const { state, ledger } = this.#context
    const quota = budget.sharing?.quota
    if (quota === undefined || state.quotas === undefined) return false
    const { service, bucket, keyName } = quota
    // The protocol has no empty values.
    const value = ledger.labelOf(key) ?? ''
    const id = value === '' ? bucket : { ...bucket, [keyName]: value }
    return state.quotas.assign({ service, id, counter: ledger.namesOf(limit.name, key).counter }, () => counter.memory)
  }

  /** Counts the requests that were charged since `first`. */
  #countRequests(first: number): void {
    for (let at = first; at < this.#held.length; at++) {
      const held = this.#held[at] as Held
      const { budget, limit, counter, reservation } = held
      if (limit.unit !== 'requests') continue
      held.isSpent = true
      counter.spend(reservation.index, 1)
      this.#count(budget, limit, 1)
      this.#alert(budget, limit, counter, reservation.index, reservation.used + 1)
    }
  }

  #exceed(budget: CompiledBudget, limit: CompiledLimit, reservation: Reservation, nowMs: number): void {
    const { policy, name, onExceeded } = budget
    const { registry } = this.#context.state
    const count = (outcome: 'rejected' | 'audited' | 'replaced'): void => void budgetMetrics(registry).exceeded(outcome, policy, name, limit.unit).value++
    setLogField(this.#exchange, 'proxy.budget.exceeded', name)
    if (onExceeded === 'Audit') return count('audited')
    if (onExceeded !== 'Reject') {
      this.#replacement = onExceeded.model
      return count('replaced')
    }
    count('rejected')
    this.#release()
    const opensAt = new Date(nowMs + reservation.resetMs).toISOString().replace(/\.\d+Z$/, 'Z')
    const { assigned } = reservation
    throw new ProxyError('BUDGET', {
      detail: `budget "${name}"${assigned === undefined ? ` of ${limit.text}` : ''} is used up until ${opensAt}`,
      headers: { ...headersOf(toAllowance(limit, reservation)), ...this.#usdHeader() },
    })
  }

  #usdHeader(): Record<string, string> {
    const { remainingUsd } = this
    return remainingUsd === undefined ? {} : { [REMAINING_USD]: remainingUsd }
  }

  /** Returns everything that is reserved. */
  #release(): void {
    for (const applied of this.#applied) applied.isCharged = false
    const remote = []
    for (const held of this.#takeHeld()) {
      const { counter, reservation, isSpent } = held
      if (isRemote(held)) {
        remote.push({ ...held, used: held.reservation.id === '' ? -reservation.taken : 0 })
        continue
      }
      if (isSpent) counter.spend(reservation.index, -1)
      counter.settle(reservation.index, -reservation.taken)
    }
    for (const [kind, settled] of byStore(remote)) void RemoteBudgets.of(this.#context.state, kind).settle(settled)
  }

  #note(limit: CompiledLimit, reservation: Reservation, { exposesRemaining }: CompiledBudget): void {
    if (reservation.assigned === Infinity) return
    if (limit.unit !== 'usd') this.allowance = tighter(this.allowance, toAllowance(limit, reservation))
    else if (exposesRemaining) this.#remainingUsd = Math.min(this.#remainingUsd ?? Infinity, limit.amount - reservation.used - reservation.taken)
  }

  /** Counts what was charged. A unit that several windows limit is counted once. */
  #count({ policy, name, limits }: CompiledBudget, limit: CompiledLimit, amount: number): void {
    if (limits.find(({ unit }) => unit === limit.unit) !== limit) return
    const { spent, state } = this.#context
    let series = spent.get(limit)
    if (series === undefined) spent.set(limit, (series = budgetMetrics(state.registry).spent(policy, name, limit.unit)))
    series.value += limit.unit === 'usd' ? amount / USD_UNITS : amount
  }

  /** Reports the highest percentage that was reached, once per window. */
  #alert({ policy, name, alertAt }: CompiledBudget, limit: CompiledLimit, counter: Counter, index: number, used: number): void {
    const percent = alertAt.find((each) => used * 100 >= limit.amount * each)
    if (percent === undefined || !counter.claimAlert(index, percent)) return
    const { state } = this.#context
    const report = (): void => {
      budgetMetrics(state.registry).alerts(percent, policy, name, limit.unit).value++
      state.log?.warn('budget reached a percentage of a limit', { code: 'PX4021', policy, budget: name, limit: limit.text, percent })
    }
    if (!(counter instanceof RemoteCounter)) return report()
    // Another replica may have reported it.
    void RemoteBudgets.of(state, counter.store)
      .claimAlert(counter, index, percent)
      .then((isFirst) => {
        if (isFirst) report()
      })
  }
}

/** An empty list that is never changed. */
const none: never[] = []

/** Adds an element to a list that may be the empty one. An array that grows by `push` from nothing has space for 17 elements. */
function append<T>(list: T[], element: T): T[] {
  if (list.length === 0) return [element]
  list.push(element)
  return list
}

/** A reservation in a store. */
type Remote = Held & { readonly counter: RemoteCounter; readonly reservation: RemoteReservation }

/** Whether a reservation was made in a store: while it cannot be used, they are made in memory. */
const isRemote = (held: Held): held is Remote => held.counter instanceof RemoteCounter && 'origin' in held.reservation

const byStore = <T extends Remote>(held: readonly T[]): Iterable<[StoreKind, T[]]> =>
  held.length === 0 ? [] : Map.groupBy(held, ({ counter }) => counter.store)

function addTo<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [value])
  else list.push(value)
}

/** Header with the dollars that are left. */
export const REMAINING_USD = 'x-budget-remaining-usd'
