import { keyOf, type KubeObject, type ListenerSet } from '../source/objects.ts'
import type { Snapshot } from '../source/snapshot.ts'
import type { Context } from './common/context.ts'
import { Cells, type Dependencies } from './common/dependencies.ts'
import { gatewayStatus, readGateway, type GatewayState } from './gateway/gateway.ts'
import { findParentGateway, listenerSetStatus } from './gateway/listener-set.ts'
import type { Outputs } from './outputs.ts'
import { indexParents, type Parents } from './route/attach.ts'
import type { StatusList } from './statuses.ts'

/** The Gateways of this controller with their ListenerSets, by `<namespace>/<name>`. */
export class Gateways {
  /** What routes can name. A lookup is recorded. */
  readonly parents: Parents
  readonly #context: Context
  readonly #dependencies: Dependencies
  readonly #cells: Cells<GatewayState | undefined>
  /** By key of the parent Gateway. */
  #listenerSets: ReadonlyMap<string, readonly ListenerSet[]> = new Map()
  #parents: ReturnType<typeof indexParents> = new Map()

  constructor(context: Context, dependencies: Dependencies) {
    this.#context = context
    this.#dependencies = dependencies
    this.#cells = new Cells(dependencies)
    this.parents = dependencies.track('parent:', () => this.#parents)
  }

  markStale(key: string): void {
    this.#cells.stale.add(key)
  }

  /** Some ListenerSets changed, whose old and new versions are `sets`. */
  changeSets(snapshot: Snapshot, sets: readonly ListenerSet[]): void {
    if (sets.length === 0) return
    for (const set of sets) this.#dependencies.change(`sets:${findParentGateway(set)}`)
    this.#listenerSets = Map.groupBy(snapshot.list('ListenerSet'), (set) => findParentGateway(set) ?? '')
  }

  /** Reads the Gateways that changed. Their results begin anew, and so do the routes that name them. */
  update(snapshot: Snapshot, outputs: Outputs, statuses: StatusList): void {
    let isChanged = false
    for (const key of this.#cells.takeStale()) {
      const old = this.#cells.get(key)
      const [namespace = '', name = ''] = key.split('/')
      const object = snapshot.get('Gateway', namespace, name)
      const now =
        object &&
        this.#cells.compute(key, () => {
          this.#dependencies.read(`sets:${key}`)
          return readGateway(this.#context, object, this.#listenerSets.get(key) ?? [])
        })
      if (!object) this.#cells.delete(key)
      if (!old && !now) continue
      isChanged = true
      for (const each of old ? objectsOf(old) : []) setStatus(statuses, each, undefined)
      outputs.replace(key, now)
      this.#dependencies.change(`parent:Gateway/${key}`)
      for (const set of [...(old?.sets ?? []), ...(now?.sets ?? [])]) this.#dependencies.change(`parent:ListenerSet/${set.key}`)
    }
    if (isChanged) this.#parents = indexParents(snapshot.list('Gateway').flatMap((gateway) => this.#cells.get(keyOf(gateway)) ?? []))
  }
}

/** Sets the statuses of a Gateway and of its ListenerSets, which count routes. */
export function writeGatewayStatus(state: GatewayState, statuses: StatusList): void {
  setStatus(statuses, state.gateway, gatewayStatus(state))
  for (const set of state.sets) setStatus(statuses, set.set, listenerSetStatus(set))
}

const objectsOf = ({ gateway, sets }: GatewayState): KubeObject[] => [gateway, ...sets.map(({ set }) => set)]

function setStatus(statuses: StatusList, { kind, metadata }: KubeObject, status: Parameters<StatusList['set']>[3]): void {
  statuses.set(kind, metadata.namespace, metadata.name, status)
}
