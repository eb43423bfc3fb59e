import { withCode } from '#api/messages/code.ts'
import { describeShadow, nameOfWinner, ShadowIndex, type Rule } from '#api/routing/shadows.ts'
import { runCooperatively, type Cooperative } from '../runtime/cooperative.ts'
import type { ConfigSnapshot } from './store.ts'

/** Rules that are added before yielding to traffic. */
const STEP = 64

const indexes = new WeakMap<ConfigSnapshot, Promise<ShadowIndex>>()

/** The matches of a version that get no requests. They are looked for in slices, and only when somebody asks. */
export function indexShadows(snapshot: ConfigSnapshot): Promise<ShadowIndex> {
  const known = indexes.get(snapshot) ?? runCooperatively(indexInSteps(snapshot))
  indexes.set(snapshot, known)
  return known
}

export function* indexInSteps({ listeners, routes, tcpRoutes }: Pick<ConfigSnapshot, 'listeners' | 'routes' | 'tcpRoutes'>): Cooperative<ShadowIndex> {
  const index = new ShadowIndex(listeners.values())
  let count = 0
  for (const rules of [routes, tcpRoutes]) {
    for (const rule of rules.values()) {
      index.add(rule)
      if (++count % STEP === 0) yield
    }
  }
  return index
}

/** One line for each match of a rule that gets no requests on some of its listeners; default: on all. */
export function describeShadows(index: ShadowIndex, rule: Rule, listeners?: readonly string[]): string[] {
  return index.find(rule, listeners).map((shadow) => withCode(describeShadow(shadow, nameOfWinner), 'PX1115'))
}
