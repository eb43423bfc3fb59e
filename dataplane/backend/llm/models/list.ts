import { evalCondition, readsMember } from '#api/cel/index.ts'
import type { Exchange } from '../../../request/exchange/exchange.ts'
import { ExchangeView } from '../../../request/expression/view.ts'
import type { ModelDescription } from '../pricing/table.ts'
import type { ListedModel } from '../request/models.ts'
import type { LlmTarget } from '../choice/target.ts'
import { describe } from './fit.ts'
import type { ModelEntry, ModelTable, ModelTarget } from './table.ts'

/** Longest way through models of other backends that is described. */
const MAX_DEPTH = 8

interface Caller {
  readonly isAllowed: (model: string) => boolean
}

/** The models that a caller may use, patterns without their names: those of its key, and with a rule that may match. */
export function listUsable(table: ModelTable, exchange: Exchange, { isAllowed }: Caller): ListedModel[] {
  return table.entries.flatMap((entry) =>
    entry.isPublic && !entry.name.includes('*') && isAllowed(entry.name) && isUsable(entry, exchange) ? [describeEntry(entry, entry.name)] : [],
  )
}

/** One model that a caller may use, by its name, which may match a pattern. */
export function findUsable(table: ModelTable, exchange: Exchange, { isAllowed }: Caller, name: string): ListedModel | undefined {
  const entry = table.find(name)
  return entry?.isPublic === true && isAllowed(name) && isUsable(entry, exchange) ? describeEntry(entry, name) : undefined
}

/** Whether a rule may match. One that reads the request for the model, which does not exist yet, may unless it is false without it. */
function isUsable({ rules }: ModelEntry, exchange: Exchange): boolean {
  return rules.some(({ when }) => {
    if (when === undefined) return true
    const result = evalCondition(when, new ExchangeView(exchange))
    return result === true || (result !== false && (readsMember(when, 'llmRequest') || readsMember(when, 'llm')))
  })
}

/** What a model can do: the most of its targets, of which one that can serve the request is chosen. */
function describeEntry(entry: ModelEntry, name: string): ListedModel {
  const found: { readonly provider: LlmTarget; readonly model: ModelDescription | undefined }[] = []
  const seen = new Set<ModelEntry>()
  const visit = (target: ModelTarget, requested: string, depth: number): void => {
    const inner = target.table?.find(target.model ?? requested)
    const isHidden = inner?.isPublic === false && target.model === undefined && entry.name.includes('*')
    if (inner !== undefined && !isHidden && depth < MAX_DEPTH && !seen.has(inner)) {
      seen.add(inner)
      for (const { to } of inner.rules) for (const one of to) visit(one, target.model ?? requested, depth + 1)
    }
    for (const provider of target.groups[0] ?? []) found.push({ provider, model: describe(target, provider, requested) })
  }
  for (const { to } of entry.rules) for (const target of to) visit(target, name, 0)
  const greatest = (field: 'contextWindow' | 'maxOutput'): ModelDescription => {
    const known = found.flatMap(({ model }) => model?.[field] ?? [])
    return known.length === 0 ? {} : { [field]: Math.max(...known) }
  }
  const tags = [...new Set(found.flatMap(({ model }) => model?.tags ?? []))]
  return {
    id: name,
    owner: found[0]?.provider.provider.system ?? 'unknown',
    ...greatest('contextWindow'),
    ...greatest('maxOutput'),
    ...(tags.length > 0 && { tags }),
  }
}
