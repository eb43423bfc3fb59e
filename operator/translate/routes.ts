import type { Shadow } from '#api/routing/shadows.ts'
import type { Snapshot } from '../source/snapshot.ts'
import { findRefusedExternalNames } from './backend/hosts.ts'
import { bindRoute, compileRoute, type Attached } from './collect.ts'
import type { Context } from './common/context.ts'
import { Cells, type Dependencies } from './common/dependencies.ts'
import type { GatewayState } from './gateway/gateway.ts'
import type { ListenerState } from './gateway/listener.ts'
import type { GatewayOutput, Outputs } from './outputs.ts'
import { attach, type AnyRoute, type Attachment, type Parents } from './route/attach.ts'
import { routeStatus, type CompiledRoute } from './route/route.ts'
import type { StatusList } from './statuses.ts'

/** A route with the Gateways that accept it. */
interface RouteState {
  readonly route: AnyRoute
  readonly attachments: readonly Attachment[]
  readonly compiled: CompiledRoute
  readonly gateways: ReadonlyMap<GatewayState, Attached>
}

/** All routes, by `<kind>/<namespace>/<name>`. */
export class Routes {
  readonly #context: Context
  readonly #parents: Parents
  readonly #cells: Cells<RouteState>
  /** Shadowed matches of the routes that have some. */
  readonly #shadowed = new Map<string, readonly Shadow[]>()
  /** Routes whose status may have changed. */
  readonly #touched = new Set<string>()

  constructor(context: Context, parents: Parents, dependencies: Dependencies) {
    this.#context = context
    this.#parents = parents
    this.#cells = new Cells(dependencies)
  }

  /** A route changed, in more than its status unless `isStatusOnly`. A status is read only while the route names no parent of ours. */
  markStale(key: string, isStatusOnly = false): void {
    if (!isStatusOnly || this.#cells.get(key)?.attachments.length === 0) this.#cells.stale.add(key)
  }

  /** Reads the routes that changed, and passes them to the Gateways that serve them. */
  update(snapshot: Snapshot, outputs: Outputs): void {
    for (const key of this.#cells.takeStale()) {
      const [kind = '', namespace = '', name = ''] = key.split('/')
      const old = this.#cells.get(key)
      const route = snapshot.get(kind as AnyRoute['kind'], namespace, name)
      const now = route && this.#cells.compute(key, () => this.#read(route))
      if (!now) this.#cells.delete(key)
      this.#touched.add(key)
      const kept = new Set([...(now?.gateways.keys() ?? [])].map((gateway) => gateway.key))
      for (const gateway of old?.gateways.keys() ?? []) if (!kept.has(gateway.key)) outputs.setRoute(gateway, key, undefined)
      for (const [gateway, attached] of now?.gateways ?? []) outputs.setRoute(gateway, key, attached)
    }
  }

  #read(route: AnyRoute): RouteState {
    const attachments = attach(this.#context, route, this.#parents)
    const compiled: CompiledRoute = attachments.length > 0 ? compileRoute(this.#context, route) : { messages: [], targets: [] }
    const listeners = new Map<GatewayState, Set<ListenerState>>()
    for (const attachment of attachments) {
      const known = listeners.get(attachment.gateway)
      const all = new Set(attachment.listeners)
      if (all.size > 0) listeners.set(attachment.gateway, known ? known.union(all) : all)
    }
    const gateways = new Map([...listeners].map(([gateway, accepting]) => [gateway, bindRoute(route, compiled, accepting)]))
    return { route, attachments, compiled, gateways }
  }

  /** Sets the statuses of routes that changed, and of those that gained or lost requests by changes of others. */
  writeStatuses(settled: readonly GatewayOutput[], outputs: Outputs, statuses: StatusList): void {
    for (const { shadows } of settled) for (const { route } of shadows.takeChanged()) this.#touched.add(`${route.kind}/${route.namespace}/${route.name}`)
    for (const key of this.#touched) {
      const state = this.#cells.get(key)
      const [kind = '', namespace = '', name = ''] = key.split('/')
      statuses.set(kind, namespace, name, state && this.#statusOf(state, outputs))
      const shadows = [...(state?.gateways ?? [])].flatMap(([gateway, { rules }]) =>
        rules.flatMap((rule) => outputs.get(gateway.key)?.shadows.find(rule) ?? []),
      )
      if (shadows.length > 0) this.#shadowed.set(key, shadows)
      else this.#shadowed.delete(key)
    }
    this.#touched.clear()
  }

  #statusOf({ route, attachments, compiled, gateways }: RouteState, outputs: Outputs): ReturnType<typeof routeStatus> {
    const shadowsOf = ({ gateway, listeners }: Attachment): readonly Shadow[] => {
      const keys = listeners.map((listener) => listener.key)
      const shadows = outputs.get(gateway.key)?.shadows
      return (gateways.get(gateway)?.rules ?? []).flatMap(
        (rule) =>
          shadows?.find(
            rule,
            rule.listeners.filter((key) => keys.includes(key)),
          ) ?? [],
      )
    }
    return routeStatus(route, attachments, compiled, shadowsOf, findRefusedExternalNames)
  }

  /** Matches that get no requests, by kind, namespace and name of their routes. */
  shadows(): readonly Shadow[] {
    return [...this.#shadowed].toSorted(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, shadows]) => shadows)
  }
}
