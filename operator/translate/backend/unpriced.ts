import { compile, environments, isParseError } from '#api/cel/index.ts'
import { withCode } from '#api/messages/code.ts'
import type { AIModel, AIModelTarget, Backend, BackendAI, Budget, Policy } from '#gen/config/types.ts'
import { compilePrices, type PriceTable } from '../../../dataplane/backend/llm/pricing/table.ts'
import { createProvider } from '../../../dataplane/backend/llm/providers/index.ts'
import { isAbove, sortOut, type Message, type Messages } from './unguarded.ts'

/** Lines for one backend; further models are counted. */
const MAX_LINES = 8

/** For each LLM backend, by key, a line for each model without a price that a budget in US dollars is for. */
export type UnpricedModels = ReadonlyMap<string, readonly string[]>

/** A budget in US dollars that rejects models without a price. */
interface UsdBudget {
  /** What the message says of it. */
  readonly name: string
  /** The effect, and how to avoid it besides a price. */
  readonly effect: string
  readonly otherFix: string
  readonly holdsFor: (model: string) => boolean
}

/** What holds for requests on their way to a model. */
interface Way {
  readonly budgets: readonly UsdBudget[]
  /** Weakest first. */
  readonly settings: readonly BackendAI[]
  /** Backends on the way. */
  readonly through: readonly Backend[]
  /** The backend whose status names the model, and the field there. */
  readonly owner: string
  readonly path: string
  /** The model that the target names, else the provider's own, else `requested`; undefined: the client chooses it. */
  readonly model: string | undefined
  readonly requested: string | undefined
}

/** Finds the models without a price that budgets of routes, or of copies, are for, in the messages of one Gateway or of a config file (llm.md §18). */
export function findUnpricedModels(list: readonly Message[]): UnpricedModels {
  const isLlm = list.some(({ kind, message }) => kind === 'backend' && (message as Backend).ai !== undefined)
  return isLlm ? new Search(sortOut(list)).run() : new Map()
}

/** For each LLM backend, by key, the lines for its status about the models of all Gateways. */
export function describeUnpricedModels(gateways: Iterable<UnpricedModels>): UnpricedModels {
  const all = new Map<string, Set<string>>()
  for (const models of gateways) for (const [key, texts] of models) all.set(key, new Set([...(all.get(key) ?? []), ...texts]))
  return new Map([...all].map(([key, texts]) => [key, shorten([...texts])]))
}

function shorten(texts: readonly string[]): readonly string[] {
  const rest = texts.length - MAX_LINES
  const lines = rest > 0 ? [...texts.slice(0, MAX_LINES), `ai: ${rest} more models have no price under a budget; add them to ai.prices`] : texts
  return lines.map((text) => withCode(text, 'PX1388'))
}

class Search {
  readonly #messages: Messages
  readonly #byKey: ReadonlyMap<string, Backend>
  readonly #found = new Map<string, Set<string>>()
  /** Catalogs are large, and most backends have the same. */
  readonly #tables: { readonly of: Pick<BackendAI, 'prices' | 'priceCatalog'>; readonly table: PriceTable }[] = []

  constructor(messages: Messages) {
    this.#messages = messages
    this.#byKey = new Map(messages.backends.map((backend) => [backend.key, backend]))
  }

  run(): UnpricedModels {
    const { routes, policies, backends } = this.#messages
    for (const backend of backends) {
      const reaching = routes.filter((route) => route.backends?.some(({ ref }) => ref.backend === backend.key))
      if (reaching.length === 0) continue
      const outer = policies.filter(({ target }) => isAbove(target, reaching))
      const way = { budgets: outer.flatMap(budgetsOf), settings: outer.flatMap(aiOf), through: [] }
      this.#visit(backend, { ...way, owner: backend.key, path: 'ai', model: undefined, requested: undefined })
    }
    return new Map([...this.#found].map(([key, texts]) => [key, [...texts]]))
  }

  /** Looks at the models or providers of a backend. */
  #visit(backend: Backend, way: Way): void {
    if (way.through.includes(backend)) return
    const { ai, policies } = backend
    const settings = [...way.settings, ...this.#policiesOf(backend, '')]
    const own = policies?.ai === undefined ? [] : [policies.ai]
    const inner: Way = { ...way, through: [...way.through, backend] }
    for (const [index, model] of (ai?.models ?? []).entries()) {
      const asked = way.model ?? way.requested
      if (asked !== undefined && model.name !== asked) continue
      const requested = model.name.includes('*') ? undefined : model.name
      this.#followAll(model, {
        ...inner,
        settings: [...settings, ...this.#policiesOf(backend, model.name), ...own],
        owner: backend.key,
        path: `ai.models.${index}`,
        requested,
      })
    }
    const single = ai?.provider && { ...ai.provider, name: 'backend', policies: undefined }
    for (const one of single === undefined ? (ai?.groups ?? []).flatMap(({ providers }) => providers) : [single]) {
      const provider = createProvider(one)
      const levels = [...settings, ...this.#policiesOf(backend, one.name), ...own, ...(one.policies?.ai === undefined ? [] : [one.policies.ai])]
      if (provider !== undefined) this.#check(provider.system, way.model ?? provider.model ?? way.requested, { ...way, settings: levels })
    }
  }

  /** The `ai` sections of policies that target a backend, or a section of it. */
  #policiesOf({ key }: Backend, wanted: string): BackendAI[] {
    return this.#messages.policies.flatMap((policy) => {
      const { kind, namespace, name, section = '' } = policy.target
      return kind === 'Backend' && `${namespace}/${name}` === key && section === wanted ? aiOf(policy) : []
    })
  }

  #followAll({ name, to = [], rules = [], fallback = [], shadow }: AIModel, way: Way): void {
    const lists: (readonly [string, readonly AIModelTarget[]])[] = [
      ['to', to],
      ...rules.map((rule, index) => [`rules.${index}.to`, rule.to] as const),
      ...fallback.map((entry, index) => [`fallback.${index}.to`, entry.to] as const),
    ]
    for (const [field, targets] of lists)
      for (const [index, target] of targets.entries()) this.#follow(target, { ...way, path: `${way.path}.${field}.${index}` })
    if (shadow === undefined) return
    const budget = { name: `shadow.budget of model ${JSON.stringify(name)}`, effect: 'is not asked', otherFix: '', holdsFor: () => true }
    const copies: Way = { ...way, budgets: [budget], path: `${way.path}.shadow.to` }
    this.#follow(shadow.to, copies)
    if (shadow.judge !== undefined) this.#follow(shadow.judge.to, { ...copies, path: `${way.path}.shadow.judge.to` })
  }

  #follow({ backendRef, model, weight }: AIModelTarget, way: Way): void {
    if (weight === 0) return
    const { backend, service, address } = backendRef
    if (service !== undefined || address !== undefined) return this.#check('openai', model ?? way.requested, way)
    const target = this.#byKey.get(backend ?? '')
    if (target !== undefined) this.#visit(target, { ...way, model })
  }

  #check(system: string, model: string | undefined, { budgets, settings, owner, path }: Way): void {
    if (model === undefined || budgets.length === 0) return
    const last = <K extends keyof BackendAI>(field: K): BackendAI[K] | undefined => settings.findLast((level) => level[field] !== undefined)?.[field]
    // The model is then another one, which may depend on the request.
    if ([...(last('overrides') ?? []), ...(last('transformations') ?? [])].some(({ field }) => field === 'model')) return
    const asked = last('modelAliases')?.[model] ?? model
    if (this.#pricesOf(last('prices'), last('priceCatalog')).find(system, asked) !== undefined) return
    for (const { name, effect, otherFix, holdsFor } of budgets) {
      if (!holdsFor(asked)) continue
      const text = `${path}: model ${JSON.stringify(asked)} has no price and ${effect} under ${name}; add the model to ai.prices or ai.priceCatalog${otherFix}`
      this.#found.set(owner, (this.#found.get(owner) ?? new Set()).add(text))
    }
  }

  #pricesOf(prices: BackendAI['prices'] | undefined, priceCatalog: BackendAI['priceCatalog'] | undefined): PriceTable {
    const known = this.#tables.find(({ of }) => of.prices === prices && of.priceCatalog === priceCatalog)
    if (known !== undefined) return known.table
    const of = { ...(prices && { prices }), ...(priceCatalog && { priceCatalog }) }
    const table = compilePrices(of)
    this.#tables.push({ of, table })
    return table
  }
}

const aiOf = ({ backend }: Policy): BackendAI[] => (backend?.ai === undefined ? [] : [backend.ai])

function budgetsOf({ policy, traffic }: Policy): UsdBudget[] {
  return (traffic?.budgets ?? []).flatMap((budget): UsdBudget[] => {
    if (budget.unpriced === 'Allow' || !budget.limits.some(({ usd }) => usd !== undefined)) return []
    const name = `budget ${JSON.stringify(budget.name)} of ${policy.kind} ${policy.namespace}/${policy.name}`
    return [{ name, effect: 'is rejected with 403', otherFix: ', or set unpriced: Allow in the budget', holdsFor: selectorOf(budget) }]
  })
}

/** Whether a budget is for a model. One that depends on more than the name is not reported. */
function selectorOf({ models }: Budget): (model: string) => boolean {
  if (models === undefined) return () => true
  const program = compile(models, environments.backend)
  return isParseError(program) ? () => false : (requestModel) => program.eval({ llm: { requestModel } }) === true
}
