import { createHash } from 'node:crypto'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { scoreOf } from '../../../net/upstream/balancer/balancer.ts'
import { priceOf } from '../pricing/price.ts'
import type { RolloutArm } from '../accounting/rollout.ts'
import type { LlmTarget } from '../choice/target.ts'
import { holds, stickyKey, type ModelFacts } from './facts.ts'
import { fitnessOf, grades, modelAt, providersOf, type Fitness } from './fit.ts'
import type { FailureCause } from '../causes/types.ts'
import type { ModelEntry, ModelShadow, ModelTable, ModelTarget } from './table.ts'

/** Longest way from a model through models of other backends. */
const MAX_DEPTH = 8
/** One of so many requests under LeastLatency is sent by weight, so that latencies of slow targets are measured again. */
const EXPLORE_EVERY = 20
/** Causes that an evicted target may have failed for. */
const unavailable: readonly FailureCause[] = ['RateLimit', 'Quota', 'Overloaded', 'Timeout', 'ServerError', 'FirstToken', 'Unreachable']

/** A target that was not used, or failed. */
export interface SkippedTarget {
  readonly target: string
  readonly reason: string
}

/** What a choice depends on besides the request. */
export interface ChoiceTools {
  readonly exchange: Exchange
  readonly facts: ModelFacts
  /** A number in [0, 1). */
  readonly random: () => number
  readonly nowMs: () => number
}

/** A model on the way to the target, with the targets of its lists that were used. */
interface Frame {
  readonly entry: ModelEntry
  /** The name that the model was asked by. */
  readonly requested: string
  /** The client chose the name: a pattern matched it. Such a name reaches no internal models of other backends. */
  readonly isOpen: boolean
  readonly depth: number
  readonly tried: Set<ModelTarget>
  /** The side of a rollout that the target in use is on. */
  arm?: RolloutArm | undefined
}

/**
 * The targets of one request for a model (llm.md §15.3): the one that is used, and after failures the next ones. A target is used once.
 *
 * @example
 * const choice = ModelChoice.start(table, 'assistant', tools) // undefined: the model does not exist for this request
 * choice.current // a target, whose providers get the request
 * choice.next('RateLimit') // the next one, or undefined: the request has failed
 */
export class ModelChoice {
  /** The name that the client asked for. */
  readonly requested: string
  /** Where copies of requests for the model go; those of models that its targets lead to are not used. */
  readonly shadow: ModelShadow | undefined
  /** Targets that were not used or failed, in order. */
  readonly skipped: SkippedTarget[] = []
  readonly #tools: ChoiceTools
  /** From the model of the client to that of the current target. */
  #frames: Frame[] = []
  #current: ModelTarget | undefined
  /** Until a target fails. A model that is being looked at is missing, so that circles end. */
  readonly #known = new Map<ModelEntry, Fitness>()

  private constructor(requested: string, tools: ChoiceTools, shadow: ModelShadow | undefined) {
    this.requested = requested
    this.shadow = shadow
    this.#tools = tools
  }

  /** Chooses the first target; undefined: there is no such model, or no rule of it matches. */
  static start(table: ModelTable, requested: string, tools: ChoiceTools): ModelChoice | undefined {
    const entry = table.find(requested)
    if (entry?.isPublic !== true) return undefined
    const choice = new ModelChoice(requested, tools, entry.shadow)
    return choice.#enter({ entry, requested, isOpen: entry.name.includes('*'), depth: 0 }) === 'no rule' ? undefined : choice
  }

  /** The target in use; undefined: none has a weight above 0 and a backend that exists. */
  get current(): ModelTarget | undefined {
    return this.#current
  }

  /** The model of the target; undefined: its provider's, else the name that the target is asked by. */
  get model(): string | undefined {
    return this.#current?.model
  }

  /** The sides of rollouts that the request is on. */
  get arms(): readonly RolloutArm[] {
    return this.#frames.flatMap(({ arm }) => arm ?? [])
  }

  /** The name that the target is asked by: that of the client, unless a model of another backend is between them. */
  get named(): string {
    return this.#frames.at(-1)?.requested ?? this.requested
  }

  /** Whether a fallback, for `cause` if it is known, has a target that was not used. */
  hasFallback(cause?: FailureCause): boolean {
    return this.#frames.some(({ entry, tried }) =>
      entry.fallback.some(({ on, to }) => (cause === undefined || on.has(cause)) && to.some((target) => target.weight > 0 && !tried.has(target))),
    )
  }

  /** The next target after the current one failed; undefined: no fallback for the cause has one left. */
  next(cause: FailureCause): ModelTarget | undefined {
    if (this.#current !== undefined) this.skipped.push({ target: this.#current.id, reason: cause })
    this.#known.clear()
    // One whose context window is too small fails for the same cause.
    return this.#fallBack([cause], cause === 'ContextLength' ? grades.unknown : grades.evicted)
  }

  /** Uses the first fallback for one of the causes that has a target left: of the innermost model first. */
  #fallBack(causes: readonly FailureCause[], least: number): ModelTarget | undefined {
    for (let index = this.#frames.length - 1; index >= 0; index--) {
      const frame = this.#frames[index]
      for (const { on, to } of frame?.entry.fallback ?? []) {
        if (frame === undefined || !causes.some((cause) => on.has(cause))) continue
        const frames = this.#frames
        this.#frames = frames.slice(0, index + 1)
        if (this.#pick(frame, to, 'fallback', least)) return this.#current
        this.#frames = frames
      }
    }
    return undefined
  }

  /** Chooses a target of a model by its rules. `no rule`: none matches. */
  #enter(place: Omit<Frame, 'tried'>): boolean | 'no rule' {
    const { exchange, facts } = this.#tools
    const { entry } = place
    const index = entry.rules.findIndex(({ when }) => when === undefined || holds(exchange, facts, when))
    const rule = entry.rules[index]
    if (rule === undefined) return 'no rule'
    const frame: Frame = { ...place, tried: new Set() }
    this.#frames.push(frame)
    const where = entry.rules.length === 1 ? 'targets' : `rule ${index}`
    if (this.#pick(frame, rule.to, where, grades.unknown)) return true
    // A fallback that can serve the request is better than a target that will fail.
    const causes = this.#bestOf(frame, rule.to) === grades.tooSmall ? ['ContextLength' as const] : unavailable
    if (this.#fallBack(causes, grades.unknown) !== undefined) return true
    if (this.#pick(frame, rule.to, where, grades.evicted)) return true
    this.#frames = this.#frames.slice(0, this.#frames.indexOf(frame))
    return false
  }

  #bestOf(frame: Frame, list: readonly ModelTarget[]): number {
    return Math.max(0, ...list.map((target) => this.#fitnessOf(frame, target).grade))
  }

  /** Uses a target of a list with at least a grade. False: there is none. */
  #pick(frame: Frame, list: readonly ModelTarget[], where: string, least: number): boolean {
    const open = list.filter((target) => target.weight > 0 && !frame.tried.has(target))
    const [only] = open
    // One target needs no comparison: its provider tells what it cannot do.
    if (
      only !== undefined &&
      open.length === 1 &&
      only.table === undefined &&
      only.groups.length > 0 &&
      !this.#frames.some((each) => each.entry.fallback.length > 0)
    ) {
      this.#use(frame, only, where, 'the only one', [])
      return true
    }
    const graded = open.map((target) => ({ target, ...this.#fitnessOf(frame, target) }))
    const best = Math.max(0, ...graded.map(({ grade }) => grade))
    if (best < least) return false
    const pool = graded.filter(({ grade }) => grade === best).map(({ target }) => target)
    const { target, why } = this.#chooseFrom(frame, pool)
    if (target === undefined) return false
    frame.tried.add(target)
    frame.arm = target.arm
    const others = graded.filter(({ grade }) => grade < best)
    if (target.table !== undefined) {
      const inner = innerOf(frame, target)
      if (inner !== undefined && this.#enter(inner) === true) return true
      return this.#pick(frame, list, where, least)
    }
    this.#use(frame, target, where, why, others)
    return true
  }

  #use(frame: Frame, target: ModelTarget, where: string, why: string, others: readonly { readonly target: ModelTarget; readonly reason: string }[]): void {
    const { entry, tried } = frame
    tried.add(target)
    frame.arm = target.arm
    this.#current = target
    for (const { target: other, reason } of others) this.skipped.push({ target: other.id, reason })
    this.#tools.exchange.trace?.add('model', entry.name, {
      target: target.id,
      from: where,
      by: why,
      ...(target.arm && { rollout: `step ${target.arm.step + 1}, ${target.arm.isNew ? 'new target' : 'baseline'}` }),
      ...Object.fromEntries(others.map((other) => [other.target.id, other.reason])),
    })
  }

  #chooseFrom({ entry, requested }: Frame, pool: readonly ModelTarget[]): { readonly target: ModelTarget | undefined; readonly why: string } {
    const { exchange, facts, random, nowMs } = this.#tools
    const [only] = pool
    if (pool.length <= 1) return { target: only, why: 'the only one that can serve the request' }
    const key = entry.sticky && stickyKey(exchange, facts, entry.sticky)
    if (key !== undefined) return { target: leastOf(pool, (target) => stickyRank(key, target)), why: 'sticky' }
    const byWeight = () => weighted(pool, random())
    const now = nowMs()
    // The share of the new target is that of the step.
    if (pool.some(({ arm }) => arm !== undefined)) return { target: byWeight(), why: 'weight' }
    switch (entry.by) {
      case 'LeastLatency': {
        if (random() * EXPLORE_EVERY < 1) return { target: byWeight(), why: 'weight, to measure' }
        return {
          target: leastOf(pool, (target) => -Math.max(...providersFor(target, requested, now).map(({ state }) => scoreOf(state))), byWeight),
          why: 'least latency',
        }
      }
      case 'LeastCost':
        return { target: leastOf(pool, (target) => costOf(target, requested, facts, now), byWeight), why: 'least cost' }
      case 'LeastBusy':
        return { target: leastOf(pool, (target) => pendingOf(target, requested, now) / target.weight, byWeight), why: 'least busy' }
      default:
        return { target: byWeight(), why: 'weight' }
    }
  }

  #fitnessOf(frame: Frame, target: ModelTarget): Fitness {
    const { facts, nowMs } = this.#tools
    if (target.table === undefined) return fitnessOf(target, frame.requested, facts, nowMs())
    const place = innerOf(frame, target)
    if (place === undefined || frame.depth >= MAX_DEPTH || this.#frames.some((outer) => outer.entry === place.entry)) return noModel
    const { entry } = place
    const known = this.#known.get(entry)
    if (known !== undefined) return known
    this.#known.set(entry, noModel)
    const inner: Frame = { ...place, tried: new Set() }
    let best = noModel
    for (const { to } of entry.rules)
      for (const one of to) {
        const own = one.weight === 0 ? best : this.#fitnessOf(inner, one)
        if (own.grade > best.grade) best = own
      }
    this.#known.set(entry, best)
    return best
  }
}

/** The model that a target of another backend with models leads to; undefined: it has none of that name. */
function innerOf(frame: Frame, { table, model }: ModelTarget): Omit<Frame, 'tried'> | undefined {
  const requested = model ?? frame.requested
  const isOpen = model === undefined && (frame.isOpen || frame.entry.name.includes('*'))
  const entry = table?.find(requested)
  return entry === undefined || (isOpen && !entry.isPublic) ? undefined : { entry, requested, isOpen, depth: frame.depth + 1 }
}

const noModel: Fitness = { grade: grades.missing, reason: 'its backend has no such model' }

/** The providers that stand for a target in comparisons; of a target that is a model of another backend, those of its first target. */
function providersFor(target: ModelTarget, requested: string, nowMs: number): readonly LlmTarget[] {
  let leaf = target
  for (let depth = 0; leaf.table !== undefined && depth < MAX_DEPTH; depth++) {
    const next = leaf.table.find(leaf.model ?? requested)?.rules[0]?.to[0]
    if (next === undefined) return []
    leaf = next
  }
  return providersOf(leaf, requested, nowMs)
}

/** A target by weight. */
function weighted(pool: readonly ModelTarget[], random: number): ModelTarget | undefined {
  let left = random * pool.reduce((sum, { weight }) => sum + weight, 0)
  for (const target of pool) {
    left -= target.weight
    if (left < 0) return target
  }
  return pool.at(-1)
}

/** The target with the least number; `amongEqual` chooses if all are equal. */
function leastOf(pool: readonly ModelTarget[], numberOf: (target: ModelTarget) => number, amongEqual?: () => ModelTarget | undefined): ModelTarget | undefined {
  const numbers = pool.map(numberOf)
  const least = Math.min(...numbers)
  if (amongEqual !== undefined && numbers.every((number) => number === least)) return amongEqual()
  return pool[numbers.indexOf(least)]
}

/**
 * The rank of a target for a sticky value by weighted rendezvous hashing: the target with the least rank is the same in all replicas, gets a share of the
 * values by its weight, and keeps its values if other targets come and go.
 */
function stickyRank(key: string, { id, weight }: ModelTarget): number {
  const bits = createHash('sha256').update(`${key}\0${id}`).digest().readUIntBE(0, 6)
  return -Math.log((bits + 0.5) / 2 ** 48) / weight
}

function costOf(target: ModelTarget, requested: string, facts: ModelFacts, nowMs: number): number {
  const costs = providersFor(target, requested, nowMs).map((provider: LlmTarget) => {
    const price = provider.settings.prices.find(provider.provider.system, modelAt(target, provider, requested))
    return price === undefined ? Infinity : priceOf(facts.promptTokens, facts.outputTokens, price)
  })
  return Math.max(...costs)
}

function pendingOf(target: ModelTarget, requested: string, nowMs: number): number {
  return providersFor(target, requested, nowMs).reduce((sum, { state }) => sum + state.pending, 0)
}
