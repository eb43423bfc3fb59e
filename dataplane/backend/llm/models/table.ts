import type { Program } from '#api/cel/index.ts'
import { parseTimeout } from '#api/duration.ts'
import { rolloutsOf, stateOf, weightsOf } from '#api/rollout/rollout.ts'
import { chatRoutes } from '#api/llm-routes.ts'
import type { AIModel, AIModelRolloutState, AIModelShadow, AIModelTarget, BackendFull } from '#gen/config/types.ts'
import type { ServiceConfig } from '../../forward/service.ts'
import { compileExpression } from '../../../request/expression/program.ts'
import type { RolloutArm } from '../accounting/rollout.ts'
import type { FailureCause } from '../causes/types.ts'
import { compileServerTarget, compileTargets, type LlmTarget, type ProviderStates } from '../choice/target.ts'
import { createNameTable } from '../common/patterns.ts'
import { createRouteTable } from '../settings/routes.ts'
import { mergeAi } from '../settings/settings.ts'

/** A backend that serves a model. */
export interface ModelTarget {
  /** Backend and model. The same in all replicas, and unique in its list. */
  readonly id: string
  readonly weight: number
  /** The model that the backend is asked for; undefined: its own, else that of the request. */
  readonly model: string | undefined
  /** The providers of the backend in priority order; empty if it does not exist, or has models itself. */
  readonly groups: readonly (readonly LlmTarget[])[]
  /** The models of the backend, if it has models itself. */
  readonly table: ModelTable | undefined
  /** The side of a rollout that the target is on. */
  readonly arm?: RolloutArm | undefined
}

interface ModelRule {
  readonly when: Program | undefined
  readonly to: readonly ModelTarget[]
}

/** Copies of the chats with a model, whose responses are compared (llm.md §15.6). */
export interface ModelShadow {
  /** Key of the backend, and name of the model that is copied. */
  readonly backend: string
  readonly model: string
  readonly to: ShadowTarget
  readonly percent: number
  /** US dollars, and the window that they are for. */
  readonly budget: Pick<AIModelShadow, 'budget'>['budget']
  readonly window: NonNullable<AIModelShadow['window']>
  readonly timeoutMs: number
  readonly concurrency: number
  readonly judge: { readonly to: ShadowTarget; readonly rubric: string } | undefined
}

/** Where copies go: models that find one, whatever the name, with the only target. */
export interface ShadowTarget {
  readonly id: string
  readonly table: ModelTable
}

/** A model by the name that clients ask for. */
export interface ModelEntry {
  readonly name: string
  readonly isPublic: boolean
  readonly rules: readonly ModelRule[]
  readonly by: NonNullable<AIModel['by']>
  readonly sticky: Program | undefined
  readonly fallback: readonly { readonly on: ReadonlySet<FailureCause>; readonly to: readonly ModelTarget[] }[]
  readonly shadow?: ModelShadow | undefined
}

/** The models of one backend. */
export interface ModelTable {
  readonly entries: readonly ModelEntry[]
  /** The model of a name: an exact one, else that of the longest pattern. */
  readonly find: (name: string) => ModelEntry | undefined
  readonly routeOf: ReturnType<typeof createRouteTable>
}

/** Types of requests by path, unless `ai.routes` is set. */
const defaultRoutes = { ...chatRoutes, '/models': 'Models' } as const

/** The states of the providers of a backend, by its key. Copies have states of their own: their failures evict no provider of clients. */
export type StatesOf = (backend: string, isCopy: boolean) => ProviderStates

/** Compiles the models of a backend, and the backends that they lead to. */
export function compileModels(config: ServiceConfig, models: readonly AIModel[], statesOf: StatesOf): ModelTable {
  const copies = new Compiler((backend) => statesOf(backend, true), undefined)
  return new Compiler((backend) => statesOf(backend, false), copies).table(config, models)
}

class Compiler {
  readonly #statesOf: (backend: string) => ProviderStates
  /** Compiles the targets of shadows; undefined: shadows are not used. */
  readonly #copies: Compiler | undefined
  /** Tables that are compiled, or being compiled: backends may refer to each other. */
  readonly #tables = new Map<string, ModelTable>()
  readonly #groups = new Map<string, readonly (readonly LlmTarget[])[]>()

  constructor(statesOf: (backend: string) => ProviderStates, copies: Compiler | undefined) {
    this.#statesOf = statesOf
    this.#copies = copies
  }

  table(config: ServiceConfig, models: readonly AIModel[]): ModelTable {
    const { backend, sections } = config
    const id = `${backend.key} ${JSON.stringify(sections)}`
    const known = this.#tables.get(id)
    if (known !== undefined) return known
    const own = aiOf(backend.policies)
    const entries: ModelEntry[] = []
    const byName = new Map<string, ModelEntry>()
    const { routes = defaultRoutes } = mergeAi([...sections, ...own])
    let find: (name: string) => ModelEntry | undefined = () => undefined
    const table: ModelTable = { entries, find: (name) => find(name), routeOf: createRouteTable(routes) }
    this.#tables.set(id, table)
    for (const model of models) {
      // A policy of the backend itself is stronger than one that targets a section, as for providers.
      const inner: ServiceConfig = { ...config, sections: [...sections, ...config.policiesOf(backend.key, model.name), ...own] }
      const entry = this.#entry(inner, model)
      entries.push(entry)
      if (!byName.has(model.name)) byName.set(model.name, entry)
    }
    find = createNameTable(Object.fromEntries(byName))
    return table
  }

  #entry(config: ServiceConfig, { name, to, rules, by = 'Weight', sticky, fallback = [], visibility, shadow }: AIModel): ModelEntry {
    const targets = (list: readonly AIModelTarget[]): ModelTarget[] => this.#targets(config, list)
    const states = rolloutStatesOf(config)
    return {
      name,
      isPublic: visibility !== 'Internal',
      rules: (to === undefined ? (rules ?? []) : [{ to, when: undefined }]).map((rule, index) => ({
        when: rule.when === undefined ? undefined : compileExpression(rule.when, 'llm'),
        to: inRollout(targets(rule.to), config.backend.key, states.get(`${name} ${index}`)),
      })),
      by,
      sticky: sticky === undefined ? undefined : compileExpression(sticky, 'llm'),
      fallback: fallback.map((entry) => ({ on: new Set(entry.on), to: targets(entry.to) })),
      shadow: shadow && this.#copies?.shadow(config, name, shadow),
    }
  }

  shadow(config: ServiceConfig, model: string, { to, percent, budget, window = 'Month', timeout, concurrency = 4, judge }: AIModelShadow): ModelShadow {
    return {
      backend: config.backend.key,
      model,
      to: this.#only(config, to),
      percent,
      budget,
      window,
      timeoutMs: parseTimeout(timeout ?? '') ?? 60_000,
      concurrency,
      judge: judge && { to: this.#only(config, judge.to), rubric: judge.rubric },
    }
  }

  #only(config: ServiceConfig, to: AIModelTarget): ShadowTarget {
    const target = this.#target(config, to)
    const entry: ModelEntry = { name: 'shadow', isPublic: true, rules: [{ when: undefined, to: [target] }], by: 'Weight', sticky: undefined, fallback: [] }
    return { id: target.id, table: { entries: [entry], find: () => entry, routeOf: createRouteTable(defaultRoutes) } }
  }

  #targets(config: ServiceConfig, list: readonly AIModelTarget[]): ModelTarget[] {
    const ids = new Map<string, number>()
    return list.map((target) => {
      const one = this.#target(config, target)
      const count = ids.get(one.id) ?? 0
      ids.set(one.id, count + 1)
      return count === 0 ? one : { ...one, id: `${one.id} #${count + 1}` }
    })
  }

  #target(config: ServiceConfig, { backendRef, model, weight = 1 }: AIModelTarget): ModelTarget {
    const { backend: key, service, port = 0, address } = backendRef
    const { sections, destinations, outer } = config
    const place = key ?? address ?? (service === undefined ? 'a backend that does not exist' : `${service}:${port}`)
    const base = { id: model === undefined ? place : `${place} ${model}`, weight, model, groups: [], table: undefined }
    if (service !== undefined || address !== undefined) {
      const id = `server ${place} ${JSON.stringify(sections)}`
      const destination = service === undefined ? destinations.forPolicy({ address: place }) : destinations.forServicePart(service, port, outer)
      const groups = this.#groups.get(id) ?? [compileServerTarget(config, place, destination, this.#statesOf(`server ${place}`))]
      this.#groups.set(id, groups)
      return { ...base, groups }
    }
    const backend = key === undefined ? undefined : config.snapshot.backends.get(key)
    if (key === undefined || backend?.ai === undefined) return base
    const inner: ServiceConfig = {
      ...config,
      backend,
      sections: [...sections, ...config.policiesOf(key, '')],
      sectionsOf: (section) => config.policiesOf(key, section),
    }
    if (backend.ai.models !== undefined) return { ...base, table: this.table(inner, backend.ai.models) }
    const id = `${key} ${JSON.stringify(sections)}`
    const groups = this.#groups.get(id) ?? compileTargets(inner, this.#statesOf(key))
    this.#groups.set(id, groups)
    return { ...base, groups }
  }
}

/** The states of the rollouts of a backend, by model and rule. One without a state yet is at its first step. */
function rolloutStatesOf({ backend }: ServiceConfig): ReadonlyMap<string, Pick<AIModelRolloutState, 'model' | 'rule' | 'id' | 'step' | 'weight'>> {
  return new Map(
    rolloutsOf(backend).map((rule) => [
      `${rule.model} ${rule.rule}`,
      stateOf(backend.rollouts, rule) ?? { ...rule, step: 0, weight: rule.rollout.steps[0] ?? 0 },
    ]),
  )
}

/** The targets of a rule with the weights of its rollout. */
function inRollout(
  targets: readonly ModelTarget[],
  backend: string,
  state: Pick<AIModelRolloutState, 'model' | 'rule' | 'id' | 'step' | 'weight'> | undefined,
) {
  if (state === undefined) return targets
  const { model, rule, id, step, weight } = state
  const weights = weightsOf(targets, weight)
  return targets.map((target, index) => ({
    ...target,
    weight: weights[index] ?? 0,
    arm: { backend, model, rule, id, step, isNew: index === targets.length - 1 },
  }))
}

/** What policies of a backend with models mean for its targets: connections have the policies of the targets alone. */
const aiOf = (policies: BackendFull | undefined): BackendFull[] => (policies?.ai === undefined ? [] : [{ ai: policies.ai }])
