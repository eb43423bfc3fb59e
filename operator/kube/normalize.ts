import { apiVersionOf, kinds, type Kind, type KubeObject, type Pod } from '../source/objects.ts'
import { schemas } from '../source/schemas.ts'
import { fillDefaults } from '../source/validate.ts'
import { statusKinds } from './resources.ts'

/** An object as the API server sends it. */
export interface RawObject {
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly uid?: string
    readonly resourceVersion?: string
    readonly generation?: number
    readonly creationTimestamp?: string
    readonly deletionTimestamp?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
    readonly ownerReferences?: readonly object[]
  }
}

/** Label of ConfigMaps with counters of budgets, which change every 5 s: translation does not read them, so their data are left out. */
export const COUNTERS_LABEL = 'proxy.dev/budget-counters'

/** The annotation of `kubectl apply`: a second copy of the whole object, also of Secrets. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** CRDs of other bundle versions may lack defaults that translation relies on. Core kinds always had theirs. */
const hasDefaults = (kind: Kind): boolean => kinds[kind].group !== '' && kinds[kind].group !== kinds.EndpointSlice.group

/**
 * Converts an object of the API server to the form of a Snapshot: newest version, no managedFields, no resourceVersion (so that objects
 * that differ in it alone are equal), and a status only for kinds whose status is read.
 */
export function normalize(kind: Kind, raw: RawObject): KubeObject {
  if (kind === 'Pod') return normalizePod(raw)
  const { metadata, status, ...rest } = raw as RawObject & { status?: object; spec?: object }
  const { name, namespace = '', uid, generation = 1, creationTimestamp = '', labels, annotations } = metadata
  const kept = annotations && Object.fromEntries(Object.entries(annotations).filter(([key]) => key !== LAST_APPLIED))
  const object = {
    ...(kind === 'Namespace' || (kind === 'ConfigMap' && labels?.[COUNTERS_LABEL] !== undefined) ? {} : rest),
    apiVersion: apiVersionOf(kind),
    kind,
    metadata: {
      name,
      namespace,
      generation,
      creationTimestamp,
      ...(uid === undefined ? {} : { uid }),
      ...(labels ? { labels } : {}),
      ...(kept && Object.keys(kept).length > 0 ? { annotations: kept } : {}),
    },
    ...(status && (statusKinds.has(kind) || kind === 'Service') ? { status } : {}),
  }
  return (hasDefaults(kind) ? fillDefaults(schemas[kind], object) : object) as KubeObject
}

/** Pods are numerous and their status changes often, so only the fields that make them endpoints are kept. */
function normalizePod(raw: RawObject): Pod {
  const { metadata, spec, status } = raw as RawObject & Pick<Pod, 'spec' | 'status'>
  const { name, namespace = '', labels, creationTimestamp = '', deletionTimestamp } = metadata
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  return {
    apiVersion: apiVersionOf('Pod'),
    kind: 'Pod',
    metadata: { name, namespace, generation: 1, creationTimestamp, ...(labels ? { labels } : {}), ...(deletionTimestamp ? { deletionTimestamp } : {}) },
    ...(spec?.nodeName ? { spec: { nodeName: spec.nodeName } } : {}),
    status: {
      ...(status?.podIP ? { podIP: status.podIP } : {}),
      ...(ready ? { conditions: [{ type: 'Ready', status: ready.status }] } : {}),
    },
  }
}
