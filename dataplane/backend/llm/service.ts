import type { OnEviction } from '../../net/destination/destinations.ts'
import { MAX_BUFFER_BYTES } from '../../request/expression/buffer.ts'
import type { CallPlan } from '../forward/call-plan.ts'
import type { BackendService, ServiceConfig } from '../forward/service.ts'
import { LlmCall } from './call.ts'
import { errorFormatOf } from './errors.ts'
import { RemoteEntries, ResponseCache, SharedEntries } from './response/cache-store.ts'
import { KeyBudgets } from './request/keys.ts'
import { compileModels, type ModelTable } from './models/table.ts'
import { Shadows } from './shadow/index.ts'
import type { Sampler } from './shadow/types.ts'
import { valueStores } from '../../runtime/value-store.ts'
import { compileTargets, type LlmTarget, type ProviderStates } from './choice/target.ts'

/** Options of the service factory. `random` returns numbers in [0, 1); tests replace it. */
export interface LlmFactoryOptions {
  readonly random?: () => number
  /** Called when a health policy evicts a provider, and when the provider returns. */
  readonly onEviction?: OnEviction
}

/** Creates the service factory for `ai` backends. The services of one backend share the health state of its providers. */
export function createLlmFactory({ random = Math.random, onEviction }: LlmFactoryOptions = {}): (config: ServiceConfig) => BackendService {
  let budgets: KeyBudgets | undefined
  let cache: ResponseCache | undefined
  let shadows: Shadows | undefined
  const states = new Map<string, ProviderStates & { users: number }>()
  const acquire = (key: string): ProviderStates => {
    const isCopy = key.startsWith(COPIES)
    const shared = states.get(key) ?? { byName: new Map(), onEviction: isCopy ? undefined : onEviction, isCopy, users: 0 }
    states.set(key, shared)
    shared.users++
    return shared
  }
  const release = (key: string): void => {
    const shared = states.get(key)
    if (shared !== undefined && --shared.users === 0) states.delete(key)
  }
  return (config) => {
    const { responses } = config.state.shared ?? {}
    const values = valueStores.get(config.state.registry)
    cache ??= new ResponseCache(responses && new SharedEntries(responses), values && new RemoteEntries(values))
    const own = { budgets: (budgets ??= new KeyBudgets(config.state.monotonicMs, config.state.shared)), cache, random, limitBytes: LLM_BUFFER_BYTES }
    const { state } = config
    const sampler = (shadows ??= new Shadows({
      state,
      random,
      send: (exchange, models, request) => new LlmCall(exchange, ownPlan, { ...own, groups: [], models, state, own: request }).run(),
    }))
    return createLlmService(config, { acquire, release, budgets, cache, random, sampler })
  }
}

/** Default size limit of bodies in LLM traffic, which carry images and documents. */
const LLM_BUFFER_BYTES = 32 * 1024 * 1024

/** `frontend.http.maxBufferSize`, unless it has its default, which the API server adds to every `frontend.http`. */
const limitOf = (configured: number | undefined): number => (configured === undefined || configured === MAX_BUFFER_BYTES ? LLM_BUFFER_BYTES : configured)

/** Copies for comparisons are not retried: a failure is a result. */
const ownPlan: CallPlan = { backendRequestMs: undefined, retry: undefined }
/** Prefix of the keys of states that copies have. No backend has a blank in its key. */
const COPIES = 'copies of '

interface Shared {
  /** The states of the providers of a backend, which all services that send requests to it share until they release it. */
  readonly acquire: (backend: string) => ProviderStates
  readonly release: (backend: string) => void
  readonly budgets: KeyBudgets
  readonly cache: ResponseCache
  readonly random: () => number
  readonly sampler: Sampler
}

/** A compiled backend: its providers, or its models. */
interface Compiled {
  readonly groups: readonly (readonly LlmTarget[])[]
  readonly models: ModelTable | undefined
  /** Backends whose states are in use. */
  readonly backends: ReadonlySet<string>
}

function createLlmService(first: ServiceConfig, { acquire, release, budgets, cache, random, sampler }: Shared): BackendService {
  const compile = (config: ServiceConfig): Compiled => {
    const backends = new Set<string>()
    const statesOf = (backend: string, isCopy = false): ProviderStates => {
      const key = isCopy ? `${COPIES}${backend}` : backend
      const states = acquire(key)
      if (backends.has(key)) release(key)
      backends.add(key)
      return states
    }
    const models = config.backend.ai?.models
    if (models === undefined) return { groups: compileTargets(config, statesOf(config.backend.key)), models, backends }
    return { groups: [], models: compileModels(config, models, statesOf), backends }
  }
  let config = first
  let compiled = compile(config)
  return {
    handle: (exchange, plan) => {
      const { groups, models } = compiled
      return new LlmCall(exchange, plan, {
        groups,
        models,
        state: config.state,
        budgets,
        cache,
        random,
        sampler,
        limitBytes: limitOf(plan.maxBufferBytes),
      }).run()
    },
    update(next) {
      const { backends } = compiled
      config = next
      compiled = compile(next)
      for (const key of backends) release(key)
    },
    // The provider is chosen later; those of a backend rarely differ in their routes.
    isFree: ({ target, method }) => {
      const { models, groups } = compiled
      const isList = ({ routeOf }: Pick<ModelTable, 'routeOf'>): boolean => routeOf(target, method).type === 'Models'
      return models === undefined ? groups.every((group) => group.every(({ settings }) => isList(settings))) : isList(models)
    },
    formatError: errorFormatOf(({ target }) => (compiled.models ?? compiled.groups[0]?.[0]?.settings)?.routeOf(target).type ?? 'Completions'),
    close() {
      for (const key of compiled.backends) release(key)
    },
    get mayTransform() {
      const { models, groups } = compiled
      return models !== undefined || groups.some((group) => group.some(({ destination }) => destination.settings.transformation !== undefined))
    },
  }
}
