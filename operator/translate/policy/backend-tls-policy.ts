import { CONTROLLER_NAME, GATEWAY_GROUP, GROUP, MAX_ANCESTORS } from '#api/names.ts'
import type { BackendTlsValidation, Policy, PolicyTarget, Secret as SecretMessage } from '#gen/config/types.ts'
import type { BackendTLSPolicySpec, LocalRef } from '../../source/gateway-api.ts'
import { INFERENCE_GROUP } from '../../source/inference.ts'
import type { BackendTLSPolicy } from '../../source/objects.ts'
import { keyOf } from '../../source/objects.ts'
import { compareAge } from '../../source/snapshot.ts'
import { conditionOf, fault, faultBy, joinFaults, type Fault } from '../../model/conditions.ts'
import { poolService } from '../common/backend-ref.ts'
import type { Context } from '../common/context.ts'
import type { Lookup } from '../common/dependencies.ts'
import type { GatewayState } from '../gateway/gateway.ts'
import { sectionsOf } from '../backend/proxy-backend.ts'
import { capAncestors } from './proxy-policy.ts'
import { readConfigMapAuthority } from '../common/secret.ts'
import { describeTlsOptions } from '../common/tls-options.ts'
import type { ObjectStatus } from '../../model/translation.ts'

interface TlsTarget {
  readonly index: number
  readonly node: string
  readonly target: PolicyTarget
  /** An older policy has this target and section, or there is no such section. */
  readonly isUnused: boolean
}

/** A BackendTLSPolicy; `gateways` is filled in while Gateways are walked. */
export interface BackendTlsState {
  readonly policy: BackendTLSPolicy
  readonly key: string
  readonly validation: BackendTlsValidation
  readonly secrets: readonly SecretMessage[]
  readonly unresolved?: Fault
  readonly rejected?: Fault
  readonly targets: readonly TlsTarget[]
  readonly gateways: Set<GatewayState>
}

/** The policies of each target: `<kind>/<namespace>/<name>` -> policies. */
export type BackendTlsIndex = Lookup<readonly { readonly state: BackendTlsState; readonly target: TlsTarget }[]>

/** All BackendTLSPolicies, the oldest first. They are read together, because the oldest wins a target. */
export interface BackendTls {
  readonly states: readonly BackendTlsState[]
  readonly index: ReadonlyMap<string, readonly { readonly state: BackendTlsState; readonly target: TlsTarget }[]>
}

export function readBackendTlsPolicies(context: Context): BackendTls {
  const taken = new Map<string, string>()
  const states = context.snapshot
    .list('BackendTLSPolicy')
    .toSorted(compareAge)
    .map((policy) => readPolicy(context, policy, taken))
  return {
    states,
    index: Map.groupBy(
      states.flatMap((state) => state.targets.map((target) => ({ state, target }))),
      ({ target }) => target.node,
    ),
  }
}

/** @param taken target and section -> the policy that has it */
function readPolicy(context: Context, policy: BackendTLSPolicy, taken: Map<string, string>): BackendTlsState {
  const { namespace } = policy.metadata
  const unused: Fault[] = []
  const targets = policy.spec.targetRefs.flatMap((ref, index): TlsTarget[] => {
    const target = findTarget(context, namespace, ref)
    if (!target) return []
    const node = `${ref.kind}/${namespace}/${ref.name}`
    if (ref.sectionName !== undefined && target.port === undefined && target.section === undefined) {
      const part = ref.kind === 'ProxyBackend' ? 'section' : 'port'
      unused.push(fault('TargetNotFound', `${ref.kind} ${namespace}/${ref.name} has no ${part} ${ref.sectionName}`, 'PX1367'))
      return [{ index, node, target, isUnused: true }]
    }
    // A section is the name of a port or its number.
    const id = `${node} ${target.port ?? target.section ?? ''}`
    const owner = taken.get(id)
    if (owner === undefined) taken.set(id, keyOf(policy))
    else unused.push(fault('Conflicted', `${ref.kind} ${namespace}/${ref.name} already has BackendTLSPolicy ${owner}`, 'PX1319'))
    return [{ index, node, target, isUnused: owner !== undefined }]
  })
  const authorities = resolveAuthorities(context, namespace, policy.spec.validation)
  const rejected = authorities.rejected ?? (unused.length > 0 && unused.length === targets.length ? joinFaults(unused) : undefined)
  const { hostname, subjectAltNames } = policy.spec.validation
  return {
    policy,
    key: keyOf(policy),
    validation: {
      sni: hostname,
      ...(subjectAltNames?.length ? { subjectAltNames: subjectAltNames.map(toAltName) } : {}),
      ...(authorities.keys ? { caCertificates: authorities.keys } : {}),
    },
    secrets: authorities.secrets,
    targets,
    gateways: new Set(),
    ...(authorities.unresolved ? { unresolved: authorities.unresolved } : {}),
    ...(rejected ? { rejected } : {}),
  }
}

type AltName = NonNullable<BackendTlsValidation['subjectAltNames']>[number]
function toAltName(each: { readonly type: string; readonly hostname?: string; readonly uri?: string }): AltName {
  return each.type === 'URI' ? { type: 'URI', value: each.uri ?? '' } : { type: 'Hostname', value: each.hostname ?? '' }
}

/**
 * The target, when it is of a kind that we know and exists; sectionName is the name or number of a Service's port, or a section of a
 * ProxyBackend. Without it, if there is no such port or section.
 */
function findTarget(context: Context, namespace: string, ref: LocalRef & { readonly sectionName?: string }): PolicyTarget | undefined {
  if (ref.group === '' && ref.kind === 'Service') {
    const service = context.snapshot.get('Service', namespace, ref.name)
    const port =
      ref.sectionName === undefined
        ? undefined
        : service?.spec.ports?.find((each) => each.name === ref.sectionName || String(each.port) === ref.sectionName)?.port
    if (!service) return undefined
    return { kind: 'Service', namespace, name: ref.name, ...(port === undefined ? {} : { port }) }
  }
  if (ref.group === INFERENCE_GROUP && ref.kind === 'InferencePool') {
    const isThere = context.options.isInferenceEnabled && context.snapshot.get('InferencePool', namespace, ref.name) !== undefined
    return isThere ? { kind: 'Service', namespace, name: poolService(ref.name) } : undefined
  }
  const backend = ref.group === GROUP && ref.kind === 'ProxyBackend' ? context.snapshot.get('ProxyBackend', namespace, ref.name) : undefined
  if (!backend) return undefined
  const section = sectionsOf(backend).find((each) => each === ref.sectionName)
  return { kind: 'Backend', namespace, name: ref.name, ...(section === undefined ? {} : { section }) }
}

interface Authorities {
  /** Absent: system CAs. One that does not resolve stays in the list, so that connections fail. */
  readonly keys?: string[]
  readonly secrets: readonly SecretMessage[]
  readonly unresolved?: Fault
  readonly rejected?: Fault
}

function resolveAuthorities(
  context: Context,
  namespace: string,
  { caCertificateRefs = [], wellKnownCACertificates }: BackendTLSPolicySpec['validation'],
): Authorities {
  if (caCertificateRefs.length === 0) {
    if (wellKnownCACertificates === 'System') return { secrets: [] }
    const rejected = fault('Invalid', `wellKnownCACertificates ${wellKnownCACertificates ?? ''} is not supported; use System, or caCertificateRefs`, 'PX1320')
    return { keys: [`unsupported/${wellKnownCACertificates ?? ''}`], secrets: [], rejected }
  }
  const secrets: SecretMessage[] = []
  const faults: Fault[] = []
  const keys = caCertificateRefs.map((ref) => {
    const missingKey = `missing/${ref.kind}/${namespace}/${ref.name}`
    if (ref.group !== '' || ref.kind !== 'ConfigMap') {
      faults.push(fault('InvalidKind', `CA reference ${ref.name} is of kind ${ref.group || 'core'}/${ref.kind}; only ConfigMap is supported`, 'PX1005'))
      return missingKey
    }
    const map = context.snapshot.get('ConfigMap', namespace, ref.name)
    const material = map && readConfigMapAuthority(map)
    if (!material?.message) {
      faults.push(
        material
          ? fault('InvalidCACertificateRef', material.error, 'PX1006')
          : fault('InvalidCACertificateRef', `ConfigMap ${namespace}/${ref.name} not found`, 'PX1003'),
      )
      return missingKey
    }
    secrets.push(material.message)
    return material.message.key
  })
  const unresolved = joinFaults(faults)
  return {
    keys: secrets.length > 0 ? secrets.map((secret) => secret.key) : keys,
    secrets,
    ...(unresolved ? { unresolved } : {}),
    ...(secrets.length === 0 && unresolved ? { rejected: faultBy('NoValidCACertificate', unresolved) } : {}),
  }
}

/** The message for one target on one Gateway, whose certificate is shown to the backend. */
export function backendTlsMessage({ policy, key, validation }: BackendTlsState, { index, target }: TlsTarget, gateway: GatewayState): Policy {
  const { namespace, name, creationTimestamp } = policy.metadata
  const client = gateway.clientCertificate
  const clientCertificate = client && ('message' in client ? client.message.key : `missing/clientCertificate/${gateway.key}`)
  return {
    key: `backendTls/${key}:${index}`,
    policy: { kind: 'BackendTLSPolicy', namespace, name },
    creationTimestamp,
    target,
    backendTls: { ...validation, ...(clientCertificate === undefined ? {} : { clientCertificate }) },
  }
}

export function backendTlsStatus({ policy, rejected, unresolved, gateways }: BackendTlsState): ObjectStatus | undefined {
  const { generation, namespace, name } = policy.metadata
  const status: { ancestors?: readonly { controllerName?: string }[] } | undefined = policy.status
  const previous = status?.ancestors ?? []
  if (gateways.size === 0 && !previous.some((entry) => entry.controllerName === CONTROLLER_NAME)) return undefined
  const entries = [...gateways]
    .toSorted((a, b) => (a.key < b.key ? -1 : 1))
    .map((state) => {
      const client = state.clientCertificate
      const bad = client && 'fault' in client ? faultBy('Invalid', client.fault, `client certificate of Gateway ${state.key}: `) : undefined
      const { metadata } = state.gateway
      return {
        ancestorRef: { group: GATEWAY_GROUP, kind: 'Gateway', namespace: metadata.namespace, name: metadata.name },
        controllerName: CONTROLLER_NAME,
        conditions: [
          conditionOf('Accepted', rejected ?? bad, 'Accepted', 'Policy is accepted', generation),
          conditionOf('ResolvedRefs', unresolved, 'ResolvedRefs', 'Configuration is valid', generation),
          ...((rejected ?? bad) ? [] : describeTlsOptions('options', policy.spec.options, 'remove them', generation)),
        ],
      }
    })
  const room = MAX_ANCESTORS - previous.filter((entry) => entry.controllerName !== CONTROLLER_NAME).length
  const accepted = conditionOf('Accepted', rejected, 'Accepted', 'Policy is accepted', generation)
  return { group: GATEWAY_GROUP, kind: 'BackendTLSPolicy', namespace, name, status: { ancestors: capAncestors(entries, [], accepted, room, generation) } }
}
