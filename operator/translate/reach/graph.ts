import type { Cells } from '../common/dependencies.ts'
import type { GatewayState } from '../gateway/gateway.ts'
import type { Messages } from '../common/messages.ts'
import type { BackendTlsState } from '../policy/backend-tls-policy.ts'
import { idOf, readContent, type Content, type Edge, type Root, type World } from './content.ts'

/** A policy, backend or pool whose status depends on the Gateways that reach it. */
export type Reachable = Content['policies'][number]['policy'] | BackendTlsState | NonNullable<Content['backend'] | Content['pool']>

interface Node {
  readonly key: string
  /** Number of edges to it, by port; 0 is no port. */
  readonly references: Map<number, number>
  content: Content
}

/** What a graph is made with. */
export interface GraphSource {
  readonly world: World
  /** Contents by `<Gateway> <node>`. */
  readonly cells: Cells<Content>
  /** Receives what the Gateway began or ceased to reach. */
  readonly touched: { add(reachable: Reachable): unknown }
}

const NOTHING: Content = { messages: [], edges: [], policies: [], backendTls: [], backend: undefined, pool: undefined }
const NO_PORT = 0

/**
 * Everything that one Gateway reaches: from the Gateway, its ListenerSets, its routes and their backends, through the policies of each and the
 * backends that those name in turn (operator.md §4.8). A Gateway gets no Secret, Service or policy that it does not reach. After a change, only the
 * objects that changed are read again, and those that are reached no more are dropped: `settle` does both.
 */
export class Graph {
  readonly #source: GraphSource
  readonly #gateway: GatewayState
  readonly #messages: Messages
  readonly #roots = new Map<string, Root>()
  readonly #nodes = new Map<string, Node>()
  readonly #stale = new Set<Node>()
  /** Nodes that lost their last edge. */
  readonly #orphans = new Set<Node>()
  /** Nodes that lost an edge and lead to others may be reached by nothing but a circle. */
  #mayCircle = false
  /** Number of nodes that reach each BackendTLSPolicy, which can have several targets. */
  readonly #tls = new Map<BackendTlsState, number>()

  constructor(source: GraphSource, gateway: GatewayState, messages: Messages) {
    this.#source = source
    this.#gateway = gateway
    this.#messages = messages
  }

  /** Replaces what the Gateway serves under a key; undefined: nothing any more. */
  setRoot(key: string, root: Root | undefined): void {
    const old = this.#roots.get(key)
    if (root) this.#roots.set(key, root)
    else this.#roots.delete(key)
    this.#replace(old ?? NOTHING, root ?? NOTHING)
  }

  /** An object changed. */
  refresh(node: string): void {
    const known = this.#nodes.get(node)
    if (known) this.#stale.add(known)
  }

  settle(): void {
    do {
      for (const node of this.#stale) this.#read(node)
      for (const node of this.#orphans) if (node.references.size === 0 && this.#nodes.get(node.key) === node) this.#drop(node)
      this.#orphans.clear()
      if (this.#stale.size === 0 && this.#mayCircle) this.#dropCircles()
    } while (this.#stale.size > 0 || this.#orphans.size > 0)
  }

  /** Drops everything: the Gateway is gone, or another graph takes the place of this one. */
  close(): void {
    for (const node of this.#nodes.values()) {
      this.#leave(node.content)
      this.#source.cells.delete(this.#cellOf(node))
    }
  }

  #cellOf({ key }: Node): string {
    return `${this.#gateway.key} ${key}`
  }

  #read(node: Node): void {
    this.#stale.delete(node)
    const { world, cells } = this.#source
    const ports = new Set([...node.references.keys()].filter((port) => port !== NO_PORT))
    const old = node.content
    node.content = cells.compute(this.#cellOf(node), () => readContent(world, this.#gateway, node.key, ports))
    this.#replace(old, node.content)
    this.#changeReach(old, node.content)
  }

  #drop(node: Node): void {
    this.#nodes.delete(node.key)
    this.#stale.delete(node)
    this.#source.cells.delete(this.#cellOf(node))
    this.#replace(node.content, NOTHING)
    this.#changeReach(node.content, NOTHING)
  }

  #replace(old: Root, now: Root): void {
    for (const message of now.messages) this.#messages.hold(message)
    for (const message of old.messages) this.#messages.release(message)
    const [before, after] = [old, now].map(({ edges }) => new Set(edges.map(idOf)))
    for (const edge of now.edges) if (before?.has(idOf(edge)) === false) this.#retain(edge)
    for (const edge of old.edges) if (after?.has(idOf(edge)) === false) this.#release(edge)
  }

  #retain({ node: key, port = NO_PORT }: Edge): void {
    let node = this.#nodes.get(key)
    if (!node) this.#nodes.set(key, (node = { key, references: new Map(), content: NOTHING }))
    const count = node.references.get(port) ?? 0
    node.references.set(port, count + 1)
    if (count === 0) this.#stale.add(node)
  }

  #release({ node: key, port = NO_PORT }: Edge): void {
    const node = this.#nodes.get(key)
    if (!node) return
    const count = node.references.get(port) ?? 0
    if (count > 1) node.references.set(port, count - 1)
    else {
      node.references.delete(port)
      if (node.references.size === 0) this.#orphans.add(node)
      else this.#stale.add(node)
    }
    this.#mayCircle ||= node.references.size > 0 && node.content.edges.length > 0
  }

  #dropCircles(): void {
    this.#mayCircle = false
    const reached = new Set<string>()
    const queue = [...this.#roots.values()].flatMap(({ edges }) => edges)
    for (let edge = queue.pop(); edge !== undefined; edge = queue.pop()) {
      if (reached.has(edge.node)) continue
      reached.add(edge.node)
      queue.push(...(this.#nodes.get(edge.node)?.content.edges ?? []))
    }
    for (const node of this.#nodes.values()) if (!reached.has(node.key)) this.#drop(node)
  }

  #changeReach(old: Content, now: Content): void {
    const isSame =
      old.backend === now.backend &&
      old.pool === now.pool &&
      isEqual(old.backendTls, now.backendTls) &&
      old.policies.length === now.policies.length &&
      old.policies.every(({ policy, target }, index) => policy === now.policies[index]?.policy && target === now.policies[index].target)
    if (isSame) return
    this.#leave(old)
    this.#enter(now)
  }

  #enter({ policies, backendTls, backend, pool }: Content): void {
    const { touched } = this.#source
    for (const { policy, target } of policies) {
      const targets = policy.gateways.get(this.#gateway)
      if (targets) targets.add(target)
      else policy.gateways.set(this.#gateway, new Set([target]))
      touched.add(policy)
    }
    for (const state of backendTls) {
      this.#tls.set(state, (this.#tls.get(state) ?? 0) + 1)
      state.gateways.add(this.#gateway)
      touched.add(state)
    }
    for (const state of [backend, pool]) {
      if (!state) continue
      state.gateways.add(this.#gateway)
      touched.add(state)
    }
  }

  #leave({ policies, backendTls, backend, pool }: Content): void {
    const { touched } = this.#source
    for (const { policy, target } of policies) {
      const targets = policy.gateways.get(this.#gateway)
      targets?.delete(target)
      if (targets?.size === 0) policy.gateways.delete(this.#gateway)
      touched.add(policy)
    }
    for (const state of backendTls) {
      const count = (this.#tls.get(state) ?? 0) - 1
      if (count > 0) this.#tls.set(state, count)
      else {
        this.#tls.delete(state)
        state.gateways.delete(this.#gateway)
      }
      touched.add(state)
    }
    for (const state of [backend, pool]) {
      if (!state) continue
      state.gateways.delete(this.#gateway)
      touched.add(state)
    }
  }
}

const isEqual = <T>(a: readonly T[], b: readonly T[]): boolean => a.length === b.length && a.every((value, index) => value === b[index])
