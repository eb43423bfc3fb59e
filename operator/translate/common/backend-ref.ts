import { GROUP } from '#api/names.ts'
import type { BackendRef } from '#gen/config/types.ts'
import { INFERENCE_GROUP } from '../../source/inference.ts'
import type { BackendObjectRef } from '../../source/gateway-api.ts'
import type { InferencePool } from '../../source/objects.ts'
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
}

/** Collects the backends that a route refers to, and the faults of references that do not resolve, while its rules are compiled. */
export interface RefSink {
  readonly unresolved: Fault[]
  readonly targets: BackendTarget[]
}

export type ResolvedBackend = { readonly ref: BackendRef; readonly target: BackendTarget } | { readonly fault: Fault }

/** A backendRef of a route (`route`) or of a policy or backend (`policy`), looked up. The grant is checked before existence. `isPoolAllowed`: it may be an InferencePool, where they are turned on. */
export function resolveBackend(context: Context, from: Referrer, ref: BackendObjectRef, by: 'route' | 'policy', isPoolAllowed = false): ResolvedBackend {
  const namespace = ref.namespace ?? from.namespace
  const key = `${namespace}/${ref.name}`
  const isService = ref.group === '' && ref.kind === 'Service'
  const isPool = isPoolAllowed && context.options.isInferenceEnabled && ref.group === INFERENCE_GROUP && ref.kind === 'InferencePool'
  if (!isService && !isPool && !(ref.group === GROUP && ref.kind === 'ProxyBackend')) {
    return { fault: fault('InvalidKind', `backend ${ref.name} is of kind ${ref.group || 'core'}/${ref.kind}; use Service or ${GROUP}/ProxyBackend`) }
  }
  const { backendGrants } = context.options
  const needsGrant = backendGrants === 'route-and-policy' || (backendGrants === 'route' && by === 'route')
  if (needsGrant && !context.grants.permits(from, ref, namespace)) {
    return {
      fault: fault(
        'RefNotPermitted',
        `backendRef ${key} not accessible to kind ${from.kind} of namespace ${from.namespace} (missing ReferenceGrant in namespace ${namespace}?)`,
      ),
    }
  }
  if (isPool) {
    const pool = context.snapshot.get('InferencePool', namespace, ref.name)
    return pool ? { ref: poolRef(pool), target: { kind: 'InferencePool', key } } : { fault: fault('BackendNotFound', `InferencePool not found: ${key}`) }
  }
  if (!isService) {
    return context.snapshot.get('ProxyBackend', namespace, ref.name)
      ? { ref: { backend: key }, target: { kind: 'ProxyBackend', key } }
      : { fault: fault('BackendNotFound', `ProxyBackend not found: ${key}`) }
  }
  if (ref.name.includes('.'))
    return { fault: fault('UnsupportedValue', `Service name ${ref.name} has a dot; name the Service in name and its namespace in namespace`) }
  if (ref.port === undefined) return { fault: fault('UnsupportedValue', `backendRef ${key} has no port; a Service needs one`) }
  return context.snapshot.get('Service', namespace, ref.name)
    ? { ref: { service: key, port: ref.port }, target: { kind: 'Service', key, port: ref.port } }
    : { fault: fault('BackendNotFound', `Service not found: ${key}`) }
}

/**
 * A pool is one destination whatever its ports: each of them is an endpoint of its own on every pod, and a port in the backendRef
 * says nothing. Services have no dot in their names, so no Service has this key.
 */
export function poolRef(pool: InferencePool): { readonly service: string; readonly port: number } {
  return { service: `${pool.metadata.namespace}/${poolService(pool.metadata.name)}`, port: pool.spec.targetPorts[0]?.number ?? 0 }
}

/** Name of the Service that represents a pool; policies of the pool are attached to it (traffic.md §4 item 10). */
export const poolService = (name: string): string => `${name}.inference`

/** A reference that does not resolve keeps its share of the traffic, which gets 500. */
export const invalidBackend: BackendRef = { invalid: 'BACKEND_NOT_FOUND' }
