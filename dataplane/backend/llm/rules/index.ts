import type { Target, UpstreamFormat } from '../common/types.ts'
import type { ModelCapabilities } from '#api/price-catalog.ts'
import type { ServerRules } from '#api/llm-presets.ts'
import { applyCapabilities, applyServerRules } from './capabilities.ts'
import { families, familyOf } from './families.ts'
import { table } from './table.ts'
import type { TargetRules } from './types.ts'

/** Models whose rules are kept. Clients choose the model, so the number is bounded. */
const MAX_MODELS = 1000
const known = new Map<Target, Map<string, TargetRules>>()
/** Rules that data changes: by the capabilities of a catalog or the rules of a server, then by the rules that they change. */
const changed = new WeakMap<ModelCapabilities | ServerRules, WeakMap<TargetRules, TargetRules>>()

/**
 * The rules of a target for a model (llm.md §7.15): those of the API, with what differs for the model's family, with what the server does, and with what a catalog of the user says.
 *
 * @example
 * rulesOf('compatible', 'mistral-large-latest').tokenLimit // 'max_tokens'
 */
export function rulesOf(target: Target, model: string, capabilities?: ModelCapabilities, server?: ServerRules): TargetRules {
  let rules = familyRules(target, capabilities?.family ?? model)
  if (server !== undefined) rules = change(rules, server, applyServerRules)
  return capabilities === undefined ? rules : change(rules, capabilities, applyCapabilities)
}

/** The rules as data changes them, once for each pair. */
function change<T extends ModelCapabilities | ServerRules>(rules: TargetRules, data: T, apply: (rules: TargetRules, data: T) => TargetRules): TargetRules {
  let byRules = changed.get(data)
  if (byRules === undefined) changed.set(data, (byRules = new WeakMap()))
  let own = byRules.get(rules)
  if (own === undefined) byRules.set(rules, (own = apply(rules, data)))
  return own
}

function familyRules(target: Target, model: string): TargetRules {
  let models = known.get(target)
  if (models === undefined) known.set(target, (models = new Map<string, TargetRules>()))
  const found = models.get(model)
  if (found !== undefined) return found
  const rules = compile(target, model)
  if (models.size >= MAX_MODELS) models.clear()
  models.set(model, rules)
  return rules
}

function compile(target: Target, model: string): TargetRules {
  const { vendor, line, version } = familyOf(model)
  let rules = table[target]
  for (const row of families) {
    if (row.vendor !== vendor || !row.targets.includes(target) || !isWithin(version, row)) continue
    if (row.lines?.test(line) !== false) rules = { ...rules, ...row.change(rules) }
  }
  return rules
}

/** Whether a version is in the range of a row. Rows of a whole vendor are for ids without version, too. */
function isWithin(version: number, { from, until }: { readonly from: number; readonly until: number }): boolean {
  return until === Infinity ? from === 0 || version >= from : version >= from && version < until
}

/** The target of an upstream format, if the provider names no other. */
export const targetOfFormat = {
  completions: 'compatible',
  responses: 'responses',
  messages: 'anthropic',
  messagesCount: 'anthropic',
  converse: 'converse',
  gemini: 'gemini',
  geminiCount: 'gemini',
} as const satisfies Partial<Record<UpstreamFormat, Target>>
