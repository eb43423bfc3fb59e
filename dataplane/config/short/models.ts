import type { ShortLLMModel, ShortModelFallback, ShortModelTarget } from '#gen/config/types.ts'
import type { Path } from './expansion.ts'

const providerKinds = ['providerA', 'providerB', 'providerC', 'providerD', 'providerE', 'providerF', 'preset', 'custom'] as const
export type ProviderKind = (typeof providerKinds)[number]

/** A model that has one provider, or targets that are names of other models of the list. */
export interface NamedModel {
  readonly model: ShortLLMModel
  /** Name of its backend: its place in the file, such as `models.gpt-5`. */
  readonly backend: string
  /** Place in the file as it is written. */
  readonly path: Path
  /** Field of the provider, as it is written; undefined: it has targets. */
  readonly provider?: string
  /** A provider that stands in place of a name. */
  readonly isInline?: boolean
}

export type Models = Readonly<Record<string, NamedModel>>

/** Where a target of a model is written. */
interface NamedTarget {
  readonly target: ShortModelTarget & { readonly model: string }
  readonly path: Path
  /** A copy of requests goes there. */
  readonly isCopy?: boolean
}

/** Causes that another provider can help with, if the file lists none. */
const defaultCauses: NonNullable<ShortModelFallback['on']> = ['RateLimit', 'Quota', 'Overloaded', 'Timeout', 'ServerError', 'FirstToken', 'Unreachable']

/** The provider of a model or target; undefined: it names other models. */
export const kindOf = (entry: Readonly<Partial<Record<ProviderKind, unknown>>>): ProviderKind | undefined =>
  providerKinds.find((kind) => entry[kind] !== undefined)

/**
 * Gives providers that stand in place of a name a model of their own, which clients cannot name. Paths are those of `written`, which has the real names of
 * vendors where the file has them.
 */
export function nameProviders(models: Readonly<Record<string, ShortLLMModel>>, written: Readonly<Record<string, ShortLLMModel>>, at: Path): Models {
  const named: Record<string, NamedModel> = {}
  const backendOf = (name: string): string => `${at[0] ?? ''}.${name}`
  const nameOf = (model: string, kind: string): string => {
    for (let index = 1; ; index++) {
      const name = `${model}.${kind}${index === 1 ? '' : `-${index}`}`
      if (!Object.hasOwn(models, name) && !Object.hasOwn(named, name)) return name
    }
  }
  for (const [name, model] of Object.entries(models)) {
    const path = [...at, name]
    const toName = (target: ShortModelTarget, writtenTarget: object, place: Path): ShortModelTarget => {
      const kind = kindOf(target)
      if (kind === undefined) return remember({ model: target.model ?? '', ...weightOf(target) }, [...place, 'model'])
      const provider = writtenField(target, writtenTarget, kind)
      const inline = nameOf(name, provider)
      const policies = { ...model.policies, ...target.policies }
      named[inline] = {
        backend: backendOf(inline),
        model: { [kind]: target[kind], ...(Object.keys(policies).length > 0 && { policies }), visibility: 'Internal' },
        path: place,
        provider,
        isInline: true,
      }
      return remember({ model: inline, ...weightOf(target) }, place)
    }
    const original: object = written[name] ?? {}
    const toNames = (targets: readonly ShortModelTarget[] | undefined, field: Path): ShortModelTarget[] | undefined =>
      targets?.map((target, index) => toName(target, valueAt(original, [...field, index]), [...path, ...field, index]))
    const kind = kindOf(model)
    if (kind !== undefined && model.fallback === undefined) {
      named[name] = { backend: backendOf(name), model, path, provider: writtenField(model, original, kind) }
      continue
    }
    const { providers, to, rules, visibility, by, sticky, shadow, policies } = model
    const own = kind === undefined ? undefined : [toName({ [kind]: model[kind] }, { [writtenField(model, original, kind)]: {} }, path)]
    const targets = own ?? toNames(providers, ['providers']) ?? toNames(to, ['to'])
    const fallback = model.fallback?.map((entry, index) => {
      const field = ['fallback', index]
      return { on: entry.on ?? defaultCauses, to: toNames(entry.to, [...field, 'to']) ?? [toName(entry, valueAt(original, field), [...path, ...field])] }
    })
    named[name] = {
      backend: backendOf(name),
      path,
      model: {
        ...(targets && { to: targets }),
        ...(rules && { rules: rules.map((rule, index) => ({ ...rule, to: toNames(rule.to, ['rules', index, 'to']) ?? [] })) }),
        ...(fallback && { fallback }),
        ...(visibility && { visibility }),
        ...(by && { by }),
        ...(sticky !== undefined && { sticky }),
        ...(shadow && { shadow }),
        ...(policies && { policies }),
      },
    }
  }
  return named
}

const weightOf = ({ weight }: ShortModelTarget): Pick<ShortModelTarget, 'weight'> => (weight === undefined ? {} : { weight })

const valueAt = (value: unknown, path: Path): object =>
  path.reduce<object>((at, part) => (at as Readonly<Record<string | number, unknown>>)[part] ?? {}, value as object)

/** The name of a field in the file: both objects have the same fields in the same order. */
const writtenField = (value: object, written: object, field: string): string => Object.keys(written)[Object.keys(value).indexOf(field)] ?? field

const places = new WeakMap<ShortModelTarget, Path>()
function remember(target: ShortModelTarget, path: Path): ShortModelTarget {
  places.set(target, path)
  return target
}

/** All targets of a model. */
function listTargets({ to = [], rules = [], fallback = [] }: ShortLLMModel = {}): NamedTarget[] {
  const targets = [...to, ...rules.flatMap((rule) => rule.to), ...fallback.flatMap((entry) => entry.to ?? [])]
  return targets.map((target) => ({ target: { ...target, model: target.model ?? '' }, path: places.get(target) ?? [] }))
}

/** Targets that are no model of the file, or that lead back to their own model. */
export function findModelCircles(models: Models, section: string): { readonly path: Path; readonly text: string }[] {
  return Object.entries(models).flatMap(([name, entry]) =>
    [...listTargets(entry.model), ...listCopies(entry)].flatMap(({ path, target, isCopy = false }) => {
      if (!Object.hasOwn(models, target.model)) return [{ path, text: `${target.model} is not the name of one of ${section}` }]
      return !isCopy && leadsTo(target.model, name, models, new Set())
        ? [{ path, text: `${target.model} leads back to ${name}; remove one of the targets in the circle` }]
        : []
    }),
  )
}

/** Targets of copies. Copies are not copied again: a model may be compared with itself. */
const listCopies = ({ path, model: { shadow } }: NamedModel): NamedTarget[] => [
  ...(shadow === undefined ? [] : [{ path: [...path, 'shadow', 'to', 'model'], target: shadow.to, isCopy: true }]),
  ...(shadow?.judge === undefined ? [] : [{ path: [...path, 'shadow', 'judge', 'to', 'model'], target: shadow.judge.to, isCopy: true }]),
]

function leadsTo(from: string, wanted: string, models: Models, seen: Set<string>): boolean {
  if (from === wanted) return true
  if (seen.has(from)) return false
  seen.add(from)
  return listTargets(models[from]?.model).some(({ target }) => leadsTo(target.model, wanted, models, seen))
}
