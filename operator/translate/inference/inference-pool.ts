import { CONTROLLER_NAME, ENDPOINTS_ANNOTATION, GATEWAY_GROUP } from '#api/names.ts'
import type { Endpoint, EndpointPicker, Service as ServiceMessage } from '#gen/config/types.ts'
import { INFERENCE_GROUP, type EndpointPickerRef } from '../../source/inference.ts'
import type { InferencePool } from '../../source/objects.ts'
import { conditionOf, fault, joinFaults, type Fault } from '../../model/conditions.ts'
import { poolRef, type BackendTarget } from '../common/backend-ref.ts'
import type { Context } from '../common/context.ts'
import type { GatewayState } from '../gateway/gateway.ts'
import { hasOwnEntries } from '../route/route.ts'
import { matchesLabels } from '../../model/selectors.ts'
import { compareEndpoints, parseAddress } from '../backend/service.ts'
import type { ObjectStatus } from '../../model/translation.ts'

/** An InferencePool, and where it is reached. `gateways` is filled in while Gateways are walked. */
export interface PoolState {
  readonly pool: InferencePool
  readonly picker: EndpointPicker | undefined
  /** Further messages for a Gateway that reaches the pool. */
  readonly targets: readonly BackendTarget[]
  readonly unresolved: Fault | undefined
  readonly gateways: Set<GatewayState>
}

/** The bound of `status.parents` in the CRD. */
const MAX_PARENTS = 32
const PLAINTEXT = 'kubernetes.io/h2c'

export function readPool(context: Context, pool: InferencePool): PoolState {
  const { endpointPickerRef: ref } = pool.spec
  if (ref === undefined) return { pool, picker: undefined, targets: [], unresolved: undefined, gateways: new Set() }
  const { namespace } = pool.metadata
  const { faults, isPlaintext } = checkPicker(context, namespace, ref)
  const unresolved = joinFaults(faults.map((message) => fault('InvalidExtensionRef', `endpointPickerRef: ${message}`, 'PX1209')))
  const key = `${namespace}/${ref.name}`
  const port = ref.port?.number
  const target = unresolved === undefined && port !== undefined ? { kind: 'Service' as const, key, port } : undefined
  return {
    pool,
    picker: {
      backend: target === undefined ? { invalid: 'BACKEND_NOT_FOUND' } : { service: target.key, port: target.port },
      failureMode: ref.failureMode,
      ...(isPlaintext ? { isPlaintext } : {}),
    },
    targets: target === undefined ? [] : [target],
    unresolved,
    gateways: new Set(),
  }
}

/** Everything that is wrong with the reference, and how its port is spoken to. */
function checkPicker(context: Context, namespace: string, { group, kind, name, port }: EndpointPickerRef): { faults: string[]; isPlaintext: boolean } {
  const faults: string[] = []
  if (group !== '') faults.push(`group ${group} is not supported; leave it empty`)
  if (kind !== 'Service') faults.push(`kind ${kind} is not supported; use Service`)
  if (port === undefined) faults.push('port is required; name a port of the Service')
  if (group !== '' || kind !== 'Service') return { faults, isPlaintext: false }
  const service = context.snapshot.get('Service', namespace, name)
  if (!service) faults.push(`Service ${namespace}/${name} not found`)
  else if (service.spec.type === 'ExternalName') faults.push(`Service ${namespace}/${name} is of type ExternalName, which may lead anywhere; use another type`)
  const found = service?.spec.ports?.find((each) => each.port === port?.number && (each.protocol ?? 'TCP') === 'TCP')
  if (service && port !== undefined && !found) faults.push(`Service ${namespace}/${name} has no TCP port ${port.number}`)
  return { faults, isPlaintext: found?.appProtocol === PLAINTEXT }
}

/** The pool in the form of a Service. */
export function poolMessage(context: Context, { pool, picker }: PoolState): ServiceMessage {
  const { namespace, name } = pool.metadata
  const { service: key, port } = poolRef(pool)
  return {
    key,
    hostname: `${name}.${namespace}.inference.${context.options.clusterDomain}`,
    ports: [
      {
        port,
        appProtocol: pool.spec.appProtocol === PLAINTEXT ? 'HTTP2' : 'HTTP11',
        endpoints: [...fixedEndpoints(context, pool), ...podEndpoints(context, pool)].toSorted(compareEndpoints),
      },
    ],
    ...(picker === undefined ? {} : { picker }),
  }
}

/** Ready pods. Terminating pods keep their requests and get no new ones while there are others. */
function podEndpoints({ snapshot }: Context, { metadata, spec }: InferencePool): Endpoint[] {
  const { matchLabels } = spec.selector
  // As in a Service: no selector selects nothing.
  if (Object.keys(matchLabels).length === 0) return []
  return snapshot.inNamespace('Pod', metadata.namespace).flatMap((pod): Endpoint[] => {
    const address = pod.status?.podIP
    const isReady = pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
    if (address === undefined || address === '' || !isReady || !matchesLabels(matchLabels, pod.metadata.labels ?? {})) return []
    const node = pod.spec?.nodeName
    const more = { ...(node === undefined ? {} : { node }), ...(pod.metadata.deletionTimestamp === undefined ? {} : { draining: true }) }
    return spec.targetPorts.map(({ number }) => ({ address, port: number, ...more }))
  })
}

/** Directory mode has no pods that run: the annotation names addresses, as for a Service. */
function fixedEndpoints({ options }: Context, { metadata, spec }: InferencePool): Endpoint[] {
  const annotation = options.isStandalone ? metadata.annotations?.[ENDPOINTS_ANNOTATION] : undefined
  const found = (annotation?.split(',') ?? []).flatMap((text) => spec.targetPorts.flatMap(({ number }) => parseAddress(text.trim(), number) ?? []))
  return [...new Map(found.map((endpoint) => [`${endpoint.address} ${endpoint.port}`, endpoint])).values()]
}

/** The parent entry of a pool that no Gateway reaches, which carries its fault. */
const placeholder = { group: GATEWAY_GROUP, kind: 'Status', name: 'default' }

/** `status.parents`: one entry for each Gateway that reaches the pool (operator.md §4.9). */
export function poolStatus({ pool, picker, unresolved, gateways }: PoolState): ObjectStatus | undefined {
  const isLost = gateways.size === 0 && unresolved !== undefined
  if (gateways.size === 0 && !isLost && !hasOwnEntries(pool)) return undefined
  const { generation, namespace, name } = pool.metadata
  const accepted =
    picker === undefined
      ? 'Pool is accepted; without endpointPickerRef the gateway picks endpoints, by loadBalancer.type ModelServer unless a policy sets another'
      : 'Pool is accepted'
  const refs = [...gateways]
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
    .slice(0, MAX_PARENTS)
    .map(({ gateway: { metadata } }) => ({ group: GATEWAY_GROUP, kind: 'Gateway', namespace: metadata.namespace, name: metadata.name }))
  const parents = (isLost ? [placeholder] : refs).map((parentRef) => ({
    parentRef,
    controllerName: CONTROLLER_NAME,
    conditions: [
      conditionOf('Accepted', undefined, 'Accepted', accepted, generation),
      conditionOf('ResolvedRefs', unresolved, 'ResolvedRefs', 'All references are resolved', generation),
    ],
  }))
  return { group: INFERENCE_GROUP, kind: 'InferencePool', namespace, name, status: { parents } }
}
