import { isAvailable, isLimited } from '../choice/candidates.ts'
import type { LlmTarget } from '../choice/target.ts'
import type { ModelDescription } from '../pricing/table.ts'
import type { ModelFacts } from './facts.ts'
import type { ModelTarget } from './table.ts'

/** A model whose context window is not known is assumed to read so many tokens. */
const ASSUMED_WINDOW = 8192

/** How well a target can serve a request; the best class is chosen from. */
export const grades = { missing: 0, evicted: 1, tooSmall: 2, unknown: 3, fits: 4 } as const
type Grade = (typeof grades)[keyof typeof grades]

/** A grade, and why it is not `fits`. */
export interface Fitness {
  readonly grade: Grade
  readonly reason: string
}

const missing: Fitness = { grade: grades.missing, reason: 'the backend does not exist or has no provider' }
const fits: Fitness = { grade: grades.fits, reason: '' }

/** The providers that a target uses now: those of its first group with one that is not evicted, and does not limit the rate of the model. */
export function providersOf(target: Pick<ModelTarget, 'groups' | 'model'>, requested: string, nowMs: number): readonly LlmTarget[] {
  for (const group of target.groups) {
    const available = group.filter(
      (one) => isAvailable(one.state, nowMs) && (one.state.limited.size === 0 || !isLimited(one.state, modelAt(target, one, requested), nowMs)),
    )
    if (available.length > 0) return available
  }
  return []
}

/** The name of a model at a provider. */
export const modelAt = ({ model }: Pick<ModelTarget, 'model'>, { provider, settings }: LlmTarget, requested: string): string =>
  settings.resolveAlias(model ?? provider.model ?? requested)

/** What the catalog says about the model of a target at a provider. */
export const describe = (target: ModelTarget, provider: LlmTarget, requested: string): ModelDescription | undefined =>
  provider.settings.prices.describe(provider.provider.system, modelAt(target, provider, requested))

/** How well a target with providers can serve a request. Its least able provider counts. */
export function fitnessOf(target: ModelTarget, requested: string, facts: ModelFacts, nowMs: number): Fitness {
  if (target.groups.every((group) => group.every(({ destination }) => destination.error !== undefined))) return missing
  const providers = providersOf(target, requested, nowMs)
  if (providers.length === 0) return { grade: grades.evicted, reason: 'evicted' }
  let least = fits
  for (const provider of providers) {
    const own = fitnessAt(describe(target, provider, requested), facts)
    if (own.grade < least.grade) least = own
  }
  return least
}

function fitnessAt(model: ModelDescription | undefined, facts: ModelFacts): Fitness {
  const window = model?.contextWindow
  if (window !== undefined && facts.exceeds(window))
    return { grade: grades.tooSmall, reason: `its context window has ${window} tokens, the prompt about ${facts.promptTokens}` }
  const tags = model?.tags ?? []
  const absent = needsOf(facts).filter((tag) => !tags.includes(tag))
  if (absent.length > 0) return { grade: grades.unknown, reason: `the catalog does not say that it has ${absent.join(', ')}` }
  if (window === undefined && facts.exceeds(ASSUMED_WINDOW)) return { grade: grades.unknown, reason: 'its context window is not known' }
  return fits
}

/** Tags of the catalog that a request needs. */
function needsOf(facts: ModelFacts): string[] {
  const { modalities } = facts
  return [
    ...(facts.hasTools ? ['tools'] : []),
    ...(modalities.has('image') ? ['vision'] : []),
    ...(modalities.has('audio') ? ['audio'] : []),
    ...(facts.isStructured ? ['structuredOutput'] : []),
  ]
}
