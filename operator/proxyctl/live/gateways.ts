import { CommandError } from '../output.ts'
import { CONTROLLER_NAME, GATEWAY_GROUP } from '#api/names.ts'
import { ApiError, type KubeConnection } from '../../kube/connection.ts'
import { collectionPaths, objectPath } from '../../kube/resources.ts'
import type { Kind } from '../../source/objects.ts'

/** The fields that are read of a GatewayClass, a Gateway or a route. */
export interface Item {
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly spec?: {
    readonly controllerName?: string
    readonly gatewayClassName?: string
    readonly listeners?: readonly {
      readonly tls?: { readonly certificateRefs?: readonly { readonly name: string; readonly namespace?: string; readonly kind?: string }[] }
    }[]
    readonly parentRefs?: readonly { readonly group?: string; readonly kind?: string; readonly name: string; readonly namespace?: string }[]
  }
}

/** Finds the Gateway to query: that of the route, else the only Gateway of this controller. Rejects with the choices if there are none or several. */
export async function findGateway(
  connection: KubeConnection,
  { namespace, route }: { readonly namespace?: string | undefined; readonly route?: string | undefined },
): Promise<string> {
  const gateways = await listGateways(connection)
  const parents = route === undefined ? undefined : await listParents(connection, route)
  const inScope = gateways.filter((gateway) => (parents ? parents.has(gateway) : namespace === undefined || gateway.startsWith(`${namespace}/`)))
  const [only, ...others] = inScope
  if (only !== undefined && others.length === 0) return only
  if (only !== undefined) throw new CommandError('PX6007', `there are several Gateways, name one with --gateway: ${inScope.join(', ')}`)
  if (parents) throw new CommandError('PX6008', `route ${String(route)} has no parentRef to a Gateway of this controller${describeChoices(gateways)}`)
  throw new CommandError(
    'PX6008',
    `there is no Gateway of this controller${namespace === undefined ? '' : ` in namespace ${namespace}`}${describeChoices(gateways)}`,
  )
}

/** Rejects if the Gateway does not exist, with those that do. */
export async function checkGateway(connection: KubeConnection, namespace: string, name: string): Promise<void> {
  const found = await read(connection, 'Gateway', namespace, name)
  if (!found) throw new CommandError('PX6008', `Gateway ${namespace}/${name} does not exist${describeChoices(await listGateways(connection))}`)
}

/** Rejects if the namespace does not exist. Users without permission to read namespaces pass. */
export async function checkNamespace(connection: KubeConnection, namespace: string): Promise<void> {
  if (!(await read(connection, 'Namespace', '', namespace))) throw new CommandError('PX6008', `namespace ${namespace} does not exist`)
}

const describeChoices = (gateways: readonly string[]): string => (gateways.length === 0 ? '' : `; the Gateways of this cluster are ${gateways.join(', ')}`)

/** The names of this controller's classes among GatewayClasses. */
export const ownClasses = (classes: readonly Item[]): string[] =>
  classes.flatMap(({ metadata, spec }) => (spec?.controllerName === CONTROLLER_NAME ? [metadata.name] : []))

/** Gateways of this controller's classes as `<namespace>/<name>`, sorted. */
export async function listGateways(connection: KubeConnection): Promise<string[]> {
  const [classes, gateways] = await Promise.all([listObjects(connection, 'GatewayClass'), listObjects(connection, 'Gateway')])
  const own = new Set(ownClasses(classes))
  return gateways
    .filter(({ spec }) => own.has(spec?.gatewayClassName ?? ''))
    .map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name}`)
    .toSorted()
}

/** Gateways that a route refers to, also through ListenerSets. */
async function listParents(connection: KubeConnection, route: string): Promise<Set<string>> {
  const [namespace = '', name = ''] = route.split('/')
  const routes = await Promise.all((['HTTPRoute', 'GRPCRoute'] as const).map((kind) => read(connection, kind, namespace, name)))
  const found = routes.flatMap((each) => each ?? [])
  if (found.length === 0) throw new CommandError('PX6008', `route ${route} does not exist`)
  const parents = await Promise.all(
    found
      .flatMap(({ spec }) => spec?.parentRefs ?? [])
      .filter(({ group = GATEWAY_GROUP }) => group === GATEWAY_GROUP)
      .map(async (parent) => {
        const of = parent.namespace ?? namespace
        if ((parent.kind ?? 'Gateway') === 'Gateway') return `${of}/${parent.name}`
        const set = (await read(connection, 'ListenerSet', of, parent.name)) as { spec?: { parentRef?: { name: string; namespace?: string } } } | undefined
        return set?.spec?.parentRef && `${set.spec.parentRef.namespace ?? of}/${set.spec.parentRef.name}`
      }),
  )
  return new Set(parents.flatMap((parent) => parent ?? []))
}

/** Objects of a kind by the newest version that is served; none if no version is. */
export async function listObjects(connection: KubeConnection, kind: Kind): Promise<readonly Item[]> {
  for (const path of collectionPaths(kind)) {
    const found = await connection.request<{ items?: Item[] }>('GET', path).catch(ignoreMissing)
    if (found) return found.items ?? []
  }
  return []
}

async function read(connection: KubeConnection, kind: Kind, namespace: string, name: string): Promise<Item | undefined> {
  for (const path of collectionPaths(kind)) {
    const found = await connection.request<Item>('GET', objectPath(path, namespace, name)).catch((error: unknown) => {
      if (kind === 'Namespace' && error instanceof ApiError && error.status === 403) return { metadata: { name } }
      return ignoreMissing(error)
    })
    if (found) return found
  }
  return undefined
}

function ignoreMissing(error: unknown): undefined {
  if (error instanceof ApiError && error.status === 404) return undefined
  throw error
}
