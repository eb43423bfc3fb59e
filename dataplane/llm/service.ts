import { MAX_BUFFER_BYTES } from '../expression/buffer.ts'
import type { BackendService, ServiceConfig } from '../service.ts'
import { LlmCall } from './call.ts'
import { KeyBudgets } from './keys.ts'
import { compileTargets, type LlmTarget, type ProviderStates } from './target.ts'

/** The factory `ai`: services of one backend share what they learn about its providers. */
export function createLlmFactory({ random = Math.random }: { random?: () => number } = {}): (config: ServiceConfig) => BackendService {
  let budgets: KeyBudgets | undefined
  const states = new Map<string, { readonly byName: ProviderStates; users: number }>()
  return (config) => {
    const { key } = config.backend
    const shared = states.get(key) ?? { byName: new Map(), users: 0 }
    states.set(key, shared)
    shared.users++
    const release = (): void => {
      if (--shared.users === 0) states.delete(key)
    }
    budgets ??= new KeyBudgets(config.state.monotonicMs)
    return createLlmService(config, { states: shared.byName, budgets, random, onClose: release })
  }
}

interface Shared {
  readonly states: ProviderStates
  readonly budgets: KeyBudgets
  readonly random: () => number
  readonly onClose: () => void
}

function createLlmService(first: ServiceConfig, { states, budgets, random, onClose }: Shared): BackendService {
  let config = first
  let groups: LlmTarget[][] = compileTargets(config, states)
  return {
    handle: (exchange, plan) =>
      new LlmCall(exchange, plan, { groups, state: config.state, budgets, random, limitBytes: plan.maxBufferBytes ?? MAX_BUFFER_BYTES }).run(),
    update(next) {
      config = next
      groups = compileTargets(next, states)
    },
    close: onClose,
  }
}
