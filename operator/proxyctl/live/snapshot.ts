import { ApiError, type KubeConnection } from '../../kube/connection.ts'
import { normalize, type RawObject } from '../../kube/normalize.ts'
import { collectionPaths, objectPath } from '../../kube/resources.ts'
import { collectionQueries } from '../../kube/source.ts'
import { inferenceKinds, kinds, type Kind, type KubeObject } from '../../source/objects.ts'

/** The objects of a cluster that the operator reads. */
interface ClusterObjects {
  readonly objects: readonly KubeObject[]
  /** Kinds that the user may not list, in no or not in all namespaces. */
  readonly unread: readonly Kind[]
  /** Whether there are InferencePools. */
  readonly isInferenceEnabled: boolean
}

/**
 * Reads every kind that the operator reads, as the operator does. Where the user may not list a kind in all namespaces, those of `namespaces` are read.
 */
export async function readCluster(connection: KubeConnection, namespaces: readonly string[]): Promise<ClusterObjects> {
  const unread: Kind[] = []
  const read = async (kind: Kind): Promise<KubeObject[]> => {
    const all = await list(connection, kind)
    if (all !== 'forbidden') return all
    unread.push(kind)
    if (kinds[kind].isClusterScoped === true) return []
    const parts = await Promise.all(namespaces.map((namespace) => list(connection, kind, namespace)))
    return parts.flatMap((part) => (part === 'forbidden' ? [] : part))
  }
  const [first, pools] = await Promise.all([
    Promise.all((Object.keys(kinds) as Kind[]).filter((kind) => !inferenceKinds.has(kind)).map(read)),
    read('InferencePool'),
  ])
  const isInferenceEnabled = pools.length > 0
  return { objects: [...first.flat(), ...pools, ...(isInferenceEnabled ? await read('Pod') : [])], unread, isInferenceEnabled }
}

/** The objects of a kind by the newest version that is served; none if no version is. */
async function list(connection: KubeConnection, kind: Kind, namespace = ''): Promise<KubeObject[] | 'forbidden'> {
  const query = new URLSearchParams(collectionQueries[kind]).toString()
  for (const collection of collectionPaths(kind)) {
    const path = namespace === '' ? collection : objectPath(collection, namespace, '').slice(0, -1)
    try {
      const { items = [] } = await connection.request<{ items?: RawObject[] }>('GET', query === '' ? path : `${path}?${query}`)
      return items.map((item) => normalize(kind, item))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      if (error.status === 403) return 'forbidden'
      if (error.status !== 404) throw error
    }
  }
  return []
}
