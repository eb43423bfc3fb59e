import { ShadowIndex } from '#api/routing/shadows.ts'
import type { Listener, Route, TcpRoute } from '#gen/config/types.ts'
import type { ConfigMessage } from '../model/translation.ts'
import { findUnsentIdentities, type UnsentIdentities } from './backend/identities.ts'
import { findUnguardedPaths, type UnguardedPaths } from './backend/unguarded.ts'
import { findUnpricedModels, type UnpricedModels } from './backend/unpriced.ts'
import { collectGateway, type Attached } from './collect.ts'
import { Messages } from './common/messages.ts'
import type { GatewayState } from './gateway/gateway.ts'
import { Graph, type GraphSource } from './reach/graph.ts'

/** The result for one Gateway. Changes take effect with `settle`. */
export class GatewayOutput {
  readonly gateway: GatewayState
  /** Of the rules of its routes. */
  readonly shadows: ShadowIndex
  messages: readonly ConfigMessage[] = []
  unguarded: UnguardedPaths = new Map()
  unpriced: UnpricedModels = new Map()
  identities: UnsentIdentities = new Map()
  readonly #held = new Messages()
  readonly #graph: Graph
  readonly #routes = new Map<string, Attached>()
  /** Lists of messages that warnings were last looked for in. */
  #inspected: readonly unknown[] = []
  #isRerouted = false

  constructor(source: GraphSource, gateway: GatewayState) {
    this.gateway = gateway
    for (const listener of [...gateway.listeners, ...gateway.sets.flatMap((set) => set.listeners)]) listener.attached = 0
    const root = collectGateway(gateway)
    this.shadows = new ShadowIndex(root.messages.flatMap(({ kind, message }) => (kind === 'listener' ? [message as Listener] : [])))
    this.#graph = new Graph(source, gateway, this.#held)
    this.#graph.setRoot('', root)
  }

  setRoute(key: string, attached: Attached | undefined): void {
    const old = this.#routes.get(key)
    if (attached) this.#routes.set(key, attached)
    else this.#routes.delete(key)
    for (const listener of old?.listeners ?? []) listener.attached--
    for (const listener of attached?.listeners ?? []) listener.attached++
    for (const rule of old?.rules ?? []) this.shadows.delete(rule)
    for (const rule of attached?.rules ?? []) this.shadows.add(rule)
    this.#graph.setRoot(key, attached)
    this.#isRerouted ||= [old, attached].some((each) => each?.rules.some(namesBackend))
  }

  refresh(node: string): void {
    this.#graph.refresh(node)
  }

  settle(): void {
    this.#graph.settle()
    this.messages = this.#held.list()
    const inspected = (['listener', 'backend', 'policy', 'secret'] as const).map((kind) => this.#held.of(kind))
    if (!this.#isRerouted && inspected.every((list, index) => list === this.#inspected[index])) return
    this.#inspected = inspected
    this.#isRerouted = false
    this.unguarded = findUnguardedPaths(this.messages)
    this.unpriced = findUnpricedModels(this.messages)
    this.identities = findUnsentIdentities(this.messages, this.gateway)
  }

  close(): void {
    this.#graph.close()
  }
}

/** Whether warnings about backends depend on a rule. */
const namesBackend = ({ backends = [] }: Route | TcpRoute): boolean => backends.some(({ ref }) => ref.backend !== undefined)

/** The results of all Gateways, by key. */
export class Outputs {
  readonly #source: GraphSource
  readonly #byKey = new Map<string, GatewayOutput>()
  readonly #unsettled = new Set<GatewayOutput>()

  constructor(source: GraphSource) {
    this.#source = source
  }

  get(key: string): GatewayOutput | undefined {
    return this.#byKey.get(key)
  }

  /** Begins anew with a Gateway, without routes; undefined: it is gone. */
  replace(key: string, gateway: GatewayState | undefined): void {
    const old = this.#byKey.get(key)
    old?.close()
    if (old) this.#unsettled.delete(old)
    this.#byKey.delete(key)
    if (!gateway) return
    const output = new GatewayOutput(this.#source, gateway)
    this.#byKey.set(key, output)
    this.#unsettled.add(output)
  }

  /** Replaces what a Gateway serves of a route; undefined: nothing. */
  setRoute({ key: gateway }: Pick<GatewayState, 'key'>, route: string, attached: Attached | undefined): void {
    const output = this.#byKey.get(gateway)
    if (!output) return
    output.setRoute(route, attached)
    this.#unsettled.add(output)
  }

  /** Brings all results up to date. Returns those that may have changed. */
  settle(): readonly GatewayOutput[] {
    for (const cell of this.#source.cells.takeStale()) {
      const [gateway = '', node = ''] = cell.split(' ')
      const output = this.#byKey.get(gateway)
      if (!output) continue
      output.refresh(node)
      this.#unsettled.add(output)
    }
    const settled = [...this.#unsettled]
    this.#unsettled.clear()
    for (const output of settled) output.settle()
    return settled
  }
}
