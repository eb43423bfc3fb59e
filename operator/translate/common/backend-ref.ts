import { GROUP } from '#api/names.ts'
import type { BackendRef } from '#gen/config/types.ts'
import { INFERENCE_GROUP } from '../../source/inference.ts'
import type { BackendObjectRef, LocalRef } from '../../source/gateway-api.ts'
import type { ServicePort } from '../../source/core.ts'
import { keyOf, type InferencePool, type Service } from '../../source/objects.ts'
import { fault, type Fault } from '../../model/conditions.ts'
import type { Context } from './context.ts'
import type { Referrer } from './reference-grant.ts'

/** A destination of traffic. */
export interface BackendTarget {
  readonly kind: 'Service' | 'ProxyBackend' | 'InferencePool'
  /** `<namespace>/<name>`. */
  readonly key: string
  /** Port of the Service. */
  readonly port?: number
  /** Name of the host that an ExternalName Service stands for. */
  readonly externalName?: string
}

/** Collects the backends that a route refers to, and the faults of references that do not resolve, while its rules are compiled. */
export interface RefSink {
  readonly unresolved: Fault[]
  readonly targets: BackendTarget[]
}

export type ResolvedBackend = { readonly ref: BackendRef; readonly target: BackendTarget } | { readonly fault: Fault }

/** Whether `from` may send traffic to `to` in `namespace`. The grant mode can relax it for policies and backends, or for all kinds (operator.md §4.6). */
export function permitsBackend({ grants, options: { backendGrants } }: Context, from: Referrer, to: LocalRef, namespace: string): boolean {
  return backendGrants === 'none' || (backendGrants === 'route' && from.group === GROUP) || grants.permits(from, to, namespace)
}

/**
 * Looks up a backendRef of a route, policy or backend. The grant is checked before existence, so that nothing is revealed about other
 * namespaces. With `isPoolAllowed` it may be an InferencePool, if the inference extension is enabled.
 */
export function resolveBackend(context: Context, from: Referrer, ref: BackendObjectRef, isPoolAllowed = false): ResolvedBackend {
  const namespace = ref.namespace ?? from.namespace
  const key = `${namespace}/${ref.name}`
  const isService = ref.group === '' && ref.kind === 'Service'
  const isPool = isPoolAllowed && context.options.isInferenceEnabled && ref.group === INFERENCE_GROUP && ref.kind === 'InferencePool'
  if (!isService && !isPool && !(ref.group === GROUP && ref.kind === 'ProxyBackend')) {
    return { fault: fault('InvalidKind', `backend ${ref.name} is of kind ${ref.group || 'core'}/${ref.kind}; use Service or ${GROUP}/ProxyBackend`, 'PX1201') }
  }
  if (!permitsBackend(context, from, ref, namespace)) {
    return {
      fault: fault(
        'RefNotPermitted',
        `backendRef ${key} not accessible to kind ${from.kind} of namespace ${from.namespace} (missing ReferenceGrant in namespace ${namespace}?)`,
        'PX1202',
      ),
    }
  }
  if (isPool) {
    const pool = context.snapshot.get('InferencePool', namespace, ref.name)
    return pool
      ? { ref: poolRef(pool), target: { kind: 'InferencePool', key } }
      : { fault: fault('BackendNotFound', `InferencePool not found: ${key}`, 'PX1203') }
  }
  if (!isService) {
    return context.snapshot.get('ProxyBackend', namespace, ref.name)
      ? { ref: { backend: key }, target: { kind: 'ProxyBackend', key } }
      : { fault: fault('BackendNotFound', `ProxyBackend not found: ${key}`, 'PX1204') }
  }
  if (ref.name.includes('.'))
    return { fault: fault('UnsupportedValue', `Service name ${ref.name} has a dot; name the Service in name and its namespace in namespace`, 'PX1205') }
  if (ref.port === undefined) return { fault: fault('UnsupportedValue', `backendRef ${key} has no port; a Service needs one`, 'PX1206') }
  const service = context.snapshot.get('Service', namespace, ref.name)
  if (!service) return { fault: fault('BackendNotFound', `Service not found: ${key}`, 'PX1207') }
  const missing = findMissingPort(service, ref.port)
  return missing === undefined
    ? { ref: { service: key, port: ref.port }, target: { kind: 'Service', key, port: ref.port, ...externalNameOf(service) } }
    : { fault: fault('BackendNotFound', missing, 'PX1208') }
}

const externalNameOf = ({ spec: { type, externalName } }: Service): Pick<BackendTarget, 'externalName'> =>
  type === 'ExternalName' && externalName !== undefined && externalName !== '' ? { externalName } : {}

/** TCP ports of a Service, which are those that a backendRef may name. Undefined for an ExternalName Service without ports, which has every port. */
export function servicePorts({ spec }: Service): readonly ServicePort[] | undefined {
  const listed = (spec.ports ?? []).filter((port) => (port.protocol ?? 'TCP') === 'TCP')
  return listed.length > 0 || spec.type !== 'ExternalName' ? listed : undefined
}

/** The problem of a reference to a port that a Service does not have, or undefined. */
function findMissingPort(service: Service, port: number): string | undefined {
  const ports = servicePorts(service)
  if (!ports || ports.some((each) => each.port === port)) return undefined
  const isOther = service.spec.ports?.some((each) => each.port === port) ?? false
  const list = ports.map((each) => (each.name === undefined ? String(each.port) : `${each.port} (${each.name})`)).join(', ')
  const problem = `Service ${keyOf(service)} has no ${isOther ? 'TCP ' : ''}port ${port}`
  return list === '' ? `${problem}; it has no TCP ports` : `${problem}; its ports are ${list}`
}

/**
 * The Service that represents a pool. A pool is one destination whatever its ports: each of them is an endpoint on every pod, and the
 * port of a backendRef is ignored. Names of Services have no dot, so no Service has this key.
 */
export function poolRef(pool: InferencePool): { readonly service: string; readonly port: number } {
  return { service: `${pool.metadata.namespace}/${poolService(pool.metadata.name)}`, port: pool.spec.targetPorts[0]?.number ?? 0 }
}

/** Name of the Service that represents a pool; policies of the pool are attached to it (traffic.md §4 item 10). */
export const poolService = (name: string): string => `${name}.inference`

/** A reference that does not resolve keeps its share of the traffic, which gets 500. */
export const invalidBackend: BackendRef = { invalid: 'BACKEND_NOT_FOUND' }
