import type { ModelCapabilities } from '#api/price-catalog.ts'
import type { ServerRules } from '#api/llm-presets.ts'
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

/** Efforts of servers that only know whether to think. */
const switched = ['none', 'low', 'medium', 'high']
const reasoningFields = { Effort: 'effort', Thinking: 'thinking', EnableThinking: 'enable_thinking', None: 'none' } as const
const histories = { Text: 'text', None: 'none' } as const
const outputs = { Schema: 'schema', Object: 'object', None: 'none' } as const
const callIds = {
  Any: { pattern: /^[^\s]{1,64}$/, max: 64, isUnique: false },
  NineAlphanumeric: { pattern: /^[a-zA-Z0-9]{9}$/, max: 9, isUnique: true },
} as const

/** The rules of a model at a server that is described as data (llm.md §4.4): what the server does, whatever the model. */
export function applyServerRules(rules: TargetRules, server: ServerRules): TargetRules {
  const { roles, reasoning, schema, media, stops } = rules
  return {
    ...rules,
    tokenLimit: server.tokenLimit ?? rules.tokenLimit,
    drops: server.drop ?? rules.drops,
    renames: server.rename ?? rules.renames,
    ids: server.toolCallIds === undefined ? rules.ids : callIds[server.toolCallIds],
    roles: { ...roles, hasNames: server.messageNames ?? roles.hasNames, hasDeveloper: server.developerRole ?? roles.hasDeveloper },
    reasoning: {
      ...reasoning,
      ...(server.reasoning !== undefined && {
        field: reasoningFields[server.reasoning],
        efforts: server.reasoning === 'Effort' ? reasoning.efforts : switched,
      }),
      ...(server.efforts !== undefined && { efforts: server.efforts, ...(server.reasoning === 'Thinking' && { field: 'thinkingEffort' as const }) }),
      ...(server.reasoningHistory !== undefined && { history: histories[server.reasoningHistory] }),
    },
    schema: {
      ...schema,
      hasStrict: server.strictTools ?? schema.hasStrict,
      output: server.outputFormat === undefined ? schema.output : outputs[server.outputFormat],
    },
    media: { ...media, hasImageUrls: server.imageUrls ?? media.hasImageUrls },
    stops: { ...stops, max: server.maxStops ?? stops.max },
    asksStreamUsage: server.streamUsage ?? rules.asksStreamUsage,
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
