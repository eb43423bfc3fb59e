import type { OnEviction } from '../../net/destination/destinations.ts'
import { MAX_BUFFER_BYTES } from '../../request/expression/buffer.ts'
import type { BackendService, ServiceConfig } from '../forward/service.ts'
import { LlmCall } from './call.ts'
import { errorFormatOf } from './errors.ts'
import { RemoteEntries, ResponseCache, SharedEntries } from './response/cache-store.ts'
import { KeyBudgets } from './request/keys.ts'
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
  const states = new Map<string, ProviderStates & { users: number }>()
  return (config) => {
    const { key } = config.backend
    const shared = states.get(key) ?? { byName: new Map(), onEviction, users: 0 }
    states.set(key, shared)
    shared.users++
    const release = (): void => {
      if (--shared.users === 0) states.delete(key)
    }
    const { responses } = config.state.shared ?? {}
    const values = valueStores.get(config.state.registry)
    cache ??= new ResponseCache(responses && new SharedEntries(responses), values && new RemoteEntries(values))
    budgets ??= new KeyBudgets(config.state.monotonicMs, config.state.shared)
    return createLlmService(config, { states: shared, budgets, cache, random, onClose: release })
  }
}

/** Default size limit of bodies in LLM traffic, which carry images and documents. */
const LLM_BUFFER_BYTES = 32 * 1024 * 1024

/** `frontend.http.maxBufferSize`, unless it has its default, which the API server adds to every `frontend.http`. */
const limitOf = (configured: number | undefined): number => (configured === undefined || configured === MAX_BUFFER_BYTES ? LLM_BUFFER_BYTES : configured)

interface Shared {
  readonly states: ProviderStates
  readonly budgets: KeyBudgets
  readonly cache: ResponseCache
  readonly random: () => number
  readonly onClose: () => void
}

function createLlmService(first: ServiceConfig, { states, budgets, cache, random, onClose }: Shared): BackendService {
  let config = first
  let groups: LlmTarget[][] = compileTargets(config, states)
  return {
    handle: (exchange, plan) =>
      new LlmCall(exchange, plan, { groups, state: config.state, budgets, cache, random, limitBytes: limitOf(plan.maxBufferBytes) }).run(),
    update(next) {
      config = next
      groups = compileTargets(next, states)
    },
    // The provider is chosen later; those of a backend rarely differ in their routes.
    formatError: errorFormatOf(({ target }) => groups[0]?.[0]?.settings.routeOf(target).type ?? 'Completions'),
    close: onClose,
    get mayTransform() {
      return groups.some((group) => group.some(({ destination }) => destination.settings.transformation !== undefined))
    },
  }
}
