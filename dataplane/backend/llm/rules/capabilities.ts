import type { ModelCapabilities } from '#api/price-catalog.ts'
import type { TargetRules } from './types.ts'

const fixed = { Any: 'never', Fixed: 'always', FixedWhileReasoning: 'reasoning' } as const

/** The rules of a model with what a catalog says about it. A new model, or one under a name of its own, needs no new version of the gateway. */
export function applyCapabilities(rules: TargetRules, capabilities: ModelCapabilities): TargetRules {
  const { sampling, maxTemperature, tokenLimit, images } = capabilities
  const hasChatLimit = rules.tokenLimit === 'max_tokens' || rules.tokenLimit === 'max_completion_tokens'
  return {
    ...rules,
    reasoning: reasoningOf(rules.reasoning, capabilities),
    sampling: {
      ...rules.sampling,
      ...(sampling !== undefined && { isFixed: fixed[sampling] }),
      ...(maxTemperature !== undefined && { maxTemperature }),
    },
    // Claude has one field.
    tokenLimit: tokenLimit !== undefined && hasChatLimit && !rules.roles.isApart ? tokenLimit : rules.tokenLimit,
    media: images === false ? { ...rules.media, images: [] } : rules.media,
  }
}

function reasoningOf(rule: TargetRules['reasoning'], { reasoning, efforts }: ModelCapabilities): TargetRules['reasoning'] {
  const named = efforts === undefined ? rule : { ...rule, efforts }
  switch (reasoning) {
    case 'None':
      return { ...named, efforts: [], withTools: 'any', hasBudget: false, isAdaptive: false, off: 'leave' }
    case 'Effort':
      return { ...named, efforts: efforts ?? unlessNone(rule.efforts), hasBudget: false, isAdaptive: true }
    case 'Budget':
      return { ...named, hasBudget: true, isAdaptive: false }
    default:
      return named
  }
}

/** A family without efforts has none that could be named. */
const unlessNone = (efforts: readonly string[] | undefined): readonly string[] | undefined => (efforts?.length === 0 ? undefined : efforts)
