import { isDeepStrictEqual } from 'node:util'
import { asWritten, compareSnapshots, createSnapshot, type Snapshot } from '../source/snapshot.ts'
import { keyOf, type EndpointSlice, type Kind, type KubeObject, type ListenerSet } from '../source/objects.ts'
import { findServers } from './backend/servers.ts'
import { SliceGroups, type SliceChange } from './backend/slices.ts'
import { createContext, type TranslateOptions } from './common/context.ts'
import { Cells, Dependencies } from './common/dependencies.ts'
import { gatewayClassStatus, isOwnClass } from './gateway/gateway-class.ts'
import { Gateways, writeGatewayStatus } from './gateways.ts'
import { Outputs } from './outputs.ts'
import { findDocuments } from './reach/documents.ts'
import { findPluginImages } from './reach/plugin-images.ts'
import { findKeySets } from './reach/key-sets.ts'
import { Reachables } from './reachables.ts'
import { Routes } from './routes.ts'
import { StatusList } from './statuses.ts'
import type { Translation } from '../model/translation.ts'

/**
 * Makes a function that translates one snapshot after another. It computes again only what depends on objects that differ from the previous
 * snapshot by identity; the result is that of `translate`. Messages and statuses that did not change keep their identity.
 */
export function createTranslator(): (snapshot: Snapshot, options?: TranslateOptions) => Translation {
  let last: { readonly options: TranslateOptions; readonly translator: Translator } | undefined
  return (snapshot, options = {}) => {
    const current = last !== undefined && isDeepStrictEqual(options, last.options) ? last : { options, translator: new Translator(options) }
    // After an exception nothing that was computed can be relied on.
    last = undefined
    const translation = current.translator.translate(snapshot)
    last = current
    return translation
  }
}

const routeKinds: readonly string[] = ['HTTPRoute', 'GRPCRoute', 'TLSRoute', 'TCPRoute'] satisfies readonly Kind[]
/** Kinds whose own status translation does not read. Of a route it is read only while the route names no parent of ours. */
const statusIsUnread: ReadonlySet<string> = new Set([...routeKinds, 'Gateway', 'GatewayClass', 'ListenerSet', 'ProxyBackend'])

/** Passes changes of objects to the parts that read them, and puts their results together. */
class Translator {
  readonly #dependencies = new Dependencies()
  #snapshot: Snapshot = createSnapshot([])
  readonly #slices = new SliceGroups()
  readonly #gateways: Gateways
  readonly #routes: Routes
  readonly #reachables: Reachables
  readonly #outputs: Outputs
  readonly #statuses = new StatusList((kind, namespace, name) => {
    const object = this.#snapshot.get(kind as Kind, namespace, name)
    return object && asWritten(object)
  })

  constructor(options: TranslateOptions) {
    const dependencies = this.#dependencies
    const { read } = dependencies
    const tracked: Snapshot = {
      get: (kind, namespace, name) => {
        read(`${kind}/${namespace}/${name}`)
        return this.#snapshot.get(kind, namespace, name)
      },
      list: (kind) => {
        read(`${kind}/*`)
        return this.#snapshot.list(kind)
      },
      inNamespace: (kind, namespace) => {
        read(`${kind}/${namespace}/*`)
        return this.#snapshot.inNamespace(kind, namespace)
      },
    }
    const context = createContext(tracked, options)
    this.#gateways = new Gateways(context, dependencies)
    const { parents } = this.#gateways
    this.#routes = new Routes(context, parents, dependencies)
    this.#reachables = new Reachables(context, parents, this.#slices, dependencies)
    const { world, touched } = this.#reachables
    this.#outputs = new Outputs({ world, cells: new Cells(dependencies), touched })
  }

  translate(snapshot: Snapshot): Translation {
    const before = this.#snapshot
    this.#snapshot = snapshot
    this.#findChanges(before)
    this.#gateways.update(snapshot, this.#outputs, this.#statuses)
    this.#routes.update(snapshot, this.#outputs)
    this.#reachables.update(snapshot, this.#statuses)
    const settled = this.#outputs.settle()
    const outputs = snapshot.list('Gateway').flatMap((gateway) => this.#outputs.get(keyOf(gateway)) ?? [])
    for (const { gateway } of settled) writeGatewayStatus(gateway, this.#statuses)
    this.#routes.writeStatuses(settled, this.#outputs, this.#statuses)
    this.#reachables.writeStatuses(outputs, this.#statuses)
    const [policies, backends] = [this.#reachables.listPolicies(snapshot), this.#reachables.listBackends(snapshot)]
    const { world } = this.#reachables
    return {
      gateways: new Map(outputs.map(({ gateway, messages }) => [gateway.key, messages])),
      statuses: this.#statuses.list(),
      keySets: findKeySets(world, policies, backends),
      documents: findDocuments(world, backends),
      pluginImages: findPluginImages(policies),
      mcpServers: findServers(backends),
      shadows: this.#routes.shadows(),
    }
  }

  /** Marks everything as stale that depends on an object that differs from the previous snapshot. */
  #findChanges(before: Snapshot): void {
    const slices: SliceChange[] = []
    const sets: ListenerSet[] = []
    const { change } = this.#dependencies
    compareSnapshots(before, this.#snapshot, (old, now) => {
      const object = now ?? old
      if (!object) return
      const { kind } = object
      const { namespace, name } = object.metadata
      const key = `${kind}/${namespace}/${name}`
      const isRoute = routeKinds.includes(kind)
      if (old && now && isStatusOnly(old, now)) {
        if (isRoute) this.#routes.markStale(key, true)
        return
      }
      change(key)
      change(`${kind}/*`)
      change(`${kind}/${namespace}/*`)
      if (isRoute) this.#routes.markStale(key)
      else if (kind === 'Gateway') this.#gateways.markStale(keyOf(object))
      else if (kind === 'EndpointSlice') slices.push({ old: old as EndpointSlice | undefined, now: now as EndpointSlice | undefined })
      else if (kind === 'ListenerSet') sets.push(...([old, now] as (ListenerSet | undefined)[]).flatMap((set) => set ?? []))
      else if (kind === 'GatewayClass') this.#statuses.set(kind, '', name, now?.kind === kind && isOwnClass(now) ? gatewayClassStatus(now) : undefined)
      else this.#reachables.markStale(kind, keyOf(object))
    })
    for (const service of this.#slices.update(slices)) change(`slices:${service}`)
    this.#gateways.changeSets(this.#snapshot, sets)
  }
}

/** Whether two versions of an object differ in nothing but a status that translation does not read. */
function isStatusOnly(old: KubeObject, now: KubeObject): boolean {
  return statusIsUnread.has(now.kind) && 'spec' in old && 'spec' in now && old.spec === now.spec && old.metadata === now.metadata
}
