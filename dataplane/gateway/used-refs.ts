import type { BackendRef, Route, TcpRoute } from '#gen/config/types.ts'
import type { ConfigSnapshot } from '../config/store.ts'

/** The backends that routes refer to. It follows versions of the config: routes that are the same as in the last one are not read again. */
export class UsedRefs {
  readonly #counts = new Map<string, { readonly ref: BackendRef; count: number }>()
  #routes: ConfigSnapshot['routes'] = new Map()
  #tcpRoutes: ConfigSnapshot['tcpRoutes'] = new Map()

  /** The references of a version, each once. */
  update({ routes, tcpRoutes }: Pick<ConfigSnapshot, 'routes' | 'tcpRoutes'>): BackendRef[] {
    this.#follow(this.#routes, routes)
    this.#follow(this.#tcpRoutes, tcpRoutes)
    this.#routes = routes
    this.#tcpRoutes = tcpRoutes
    return [...this.#counts.values()].map(({ ref }) => ref)
  }

  #follow<R extends Route | TcpRoute>(before: ReadonlyMap<string, R>, after: ReadonlyMap<string, R>): void {
    if (before === after) return
    for (const [key, route] of after) if (before.get(key) !== route) for (const ref of refsOf(route)) this.#add(ref)
    for (const [key, route] of before) if (after.get(key) !== route) for (const ref of refsOf(route)) this.#remove(ref)
  }

  #add(ref: BackendRef): void {
    const known = this.#counts.get(keyOf(ref))
    if (known === undefined) this.#counts.set(keyOf(ref), { ref, count: 1 })
    else known.count++
  }

  #remove(ref: BackendRef): void {
    const known = this.#counts.get(keyOf(ref))
    if (known !== undefined && --known.count === 0) this.#counts.delete(keyOf(ref))
  }
}

const keyOf = ({ service, port, backend, address, invalid }: BackendRef): string => [service, port, backend, address, invalid].join(' ')

function* refsOf(route: Route | TcpRoute): Generator<BackendRef> {
  for (const { ref, mirrors } of (route as Route).backends ?? []) {
    yield ref
    for (const mirror of mirrors ?? []) yield mirror.backend
  }
  for (const mirror of (route as Route).filters?.mirrors ?? []) yield mirror.backend
}
