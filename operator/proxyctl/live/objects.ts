import { CONTROLLER_NAME, GATEWAY_GROUP } from '#api/names.ts'
import type { Condition } from '../../model/translation.ts'
import type { Kind } from '../../source/objects.ts'
import { asWritten } from '../../source/snapshot.ts'
import { explainUnreachable, kubeconfigOf } from './admin.ts'
import type { Invocation } from '../types.ts'

interface Reference {
  readonly group?: string
  readonly kind?: string
  readonly name: string
  readonly namespace?: string
  readonly sectionName?: string
}

/** An attachment in the status of a route or a policy. */
interface Entry {
  readonly controllerName?: string
  readonly parentRef?: Reference
  readonly ancestorRef?: Reference
  readonly conditions?: readonly Condition[]
}

/** Fields of all kinds that `get` shows. */
export interface ListedObject {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  readonly spec: {
    readonly gatewayClassName?: string
    readonly hostnames?: readonly string[]
    readonly rules?: readonly { readonly backendRefs?: readonly Reference[] }[]
    readonly targetRefs?: readonly Reference[]
    readonly targetSelectors?: readonly { readonly kind?: string; readonly matchLabels?: Readonly<Record<string, string>> }[]
    readonly listeners?: readonly { readonly name: string; readonly port: number; readonly protocol: string }[]
  } & Readonly<Record<string, unknown>>
  readonly status: {
    readonly conditions?: readonly Condition[]
    readonly parents?: readonly Entry[]
    readonly ancestors?: readonly Entry[]
    readonly addresses?: readonly { readonly value: string }[]
    readonly listeners?: readonly { readonly name: string; readonly attachedRoutes?: number; readonly conditions?: readonly Condition[] }[]
  }
}

/** Objects of some kinds with their statuses, and the policies in force for a route where the source knows them. */
export interface ObjectSource {
  readonly objects: readonly ListedObject[]
  /** `rules` of `/debug/effective`; undefined: the data plane has to be queried. */
  explain?(namespace: string, name: string): readonly object[]
}

/** Reads objects from the cluster. Those of other controllers are left out. */
export async function readClusterObjects(invocation: Invocation, kinds: readonly Kind[]): Promise<ObjectSource> {
  const [{ connect }, { listObjects, listGateways }] = await Promise.all([import('../../kube/connection.ts'), import('./gateways.ts')])
  const connection = connect({ kubeconfig: kubeconfigOf(invocation), userAgent: 'proxyctl' })
  try {
    const [gateways, ...lists] = await Promise.all([
      kinds.includes('Gateway') ? listGateways(connection) : Promise.resolve<string[]>([]),
      ...kinds.map(async (kind) => (await listObjects(connection, kind)).map((item) => ({ ...item, kind }) as unknown as ListedObject)),
    ])
    const objects = lists.flat().map((object) => ({ ...object, spec: object.spec ?? {}, status: ownStatus(object.status ?? {}) }))
    return {
      objects: objects.filter(({ kind, metadata, status }) =>
        kind === 'Gateway' ? gateways.includes(`${metadata.namespace ?? ''}/${metadata.name}`) : status !== undefined,
      ) as readonly ListedObject[],
    }
  } catch (error) {
    throw explainUnreachable(error, kubeconfigOf(invocation))
  } finally {
    connection.close()
  }
}

/** A status with our entries only; undefined if all entries are those of other controllers. */
function ownStatus(status: ListedObject['status']): ListedObject['status'] | undefined {
  const own = (entries: readonly Entry[] | undefined) => entries?.filter(({ controllerName }) => controllerName === CONTROLLER_NAME)
  const [parents, ancestors] = [own(status.parents), own(status.ancestors)]
  const isForeign = (status.parents?.length ?? 0) + (status.ancestors?.length ?? 0) > 0 && (parents?.length ?? 0) + (ancestors?.length ?? 0) === 0
  return isForeign ? undefined : { ...status, ...(parents && { parents }), ...(ancestors && { ancestors }) }
}

/** Reads manifests, with the statuses that they would get. */
export async function readManifestObjects(directory: string, namespace: string | undefined, kinds: readonly Kind[]): Promise<ObjectSource> {
  const [{ readManifests }, { explainRoute }, { indexPolicies }, { indexInSteps }, { runSync }] = await Promise.all([
    import('../files/manifests.ts'),
    import('../../../dataplane/config/explain.ts'),
    import('../../../dataplane/config/merge.ts'),
    import('../../../dataplane/config/shadows.ts'),
    import('../../../dataplane/runtime/cooperative.ts'),
  ])
  const { snapshot, translation } = await readManifests(directory, namespace)
  const statuses = new Map(translation.statuses.map((each) => [`${each.kind} ${each.namespace ?? ''}/${each.name}`, each.status]))
  return {
    objects: kinds.flatMap((kind) =>
      snapshot.list(kind).map((object) => {
        const { metadata } = object
        const written = asWritten(object)
        const status = statuses.get(`${kind} ${metadata.namespace}/${metadata.name}`) ?? {}
        return { kind, metadata, spec: 'spec' in written ? written.spec : {}, status } as unknown as ListedObject
      }),
    ),
    explain: (of, name) =>
      [...translation.gateways.values()].flatMap((messages) => {
        const byKind = (wanted: string): Map<string, never> =>
          new Map(messages.flatMap(({ kind, key, message }) => (kind === wanted ? [[key, message as never]] : [])))
        const [routes, listeners, policies] = [byKind('route'), byKind('listener'), byKind('policy')]
        const shadows = runSync(indexInSteps({ routes, listeners, tcpRoutes: new Map() }))
        return explainRoute({ routes, listeners, backends: byKind('backend') }, indexPolicies(policies), shadows, of, name)
      }),
  }
}

/** `Gateway default/gw http`: a reference as text; without a kind, that of Gateways. */
export function describeReference({ group = GATEWAY_GROUP, kind, name, namespace, sectionName }: Reference, own: string | undefined): string {
  const is = kind ?? (group === GATEWAY_GROUP ? 'Gateway' : 'Service')
  return `${is} ${namespace ?? own ?? ''}/${name}${sectionName === undefined ? '' : ` ${sectionName}`}`
}
