import type { RolloutArm } from '../accounting/rollout.ts'
import type { RoutedModel } from '../accounting/routed.ts'
import type { Rates } from '../pricing/price.ts'
import type { ModelChoice, SkippedTarget } from './choice.ts'
import type { ModelFacts } from './facts.ts'
import { modelAt } from './fit.ts'
import type { ModelTable } from './table.ts'

/** What expressions, logs and traces know about the choice of a target: members of `llm`, computed when they are read. */
export class ModelView implements RoutedModel {
  readonly requested: string
  /** Set once a target is chosen. */
  choice: ModelChoice | undefined
  readonly #table: ModelTable
  readonly #facts: ModelFacts

  constructor(table: ModelTable, requested: string, facts: ModelFacts) {
    this.requested = requested
    this.#table = table
    this.#facts = facts
  }

  get promptTokens(): number {
    return this.#facts.promptTokens
  }

  get modalities(): readonly string[] {
    return [...this.#facts.modalities]
  }

  /** Rates of the models of all targets with a price. */
  get prices(): Readonly<Record<string, Rates>> {
    const entry = this.#table.find(this.requested)
    const targets = [...(entry?.rules ?? []), ...(entry?.fallback ?? [])].flatMap(({ to }) => to)
    return Object.fromEntries(
      targets.flatMap((target) =>
        target.groups.flat().flatMap((provider) => {
          const name = modelAt(target, provider, this.requested)
          const price = provider.settings.prices.find(provider.provider.system, name)
          return price === undefined ? [] : [[name, price.rates] as const]
        }),
      ),
    )
  }

  get target(): string | undefined {
    return this.choice?.current?.id
  }

  get arms(): readonly RolloutArm[] {
    return this.choice?.arms ?? []
  }

  get isNamed(): boolean {
    return this.choice?.model !== undefined
  }

  get skipped(): readonly SkippedTarget[] {
    return this.choice?.skipped ?? []
  }
}
