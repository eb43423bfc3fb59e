import { withoutCodes } from '#api/messages/code.ts'
import { GATEWAY_GROUP } from '#api/names.ts'
import type { ClientValidation, ListenerTls as ListenerTlsMessage, Secret as SecretMessage } from '#gen/config/types.ts'
import type { FrontendTls, FrontendValidation, ListenerSpec, ListenerTls, ObjectRef } from '../../source/gateway-api.ts'
import type { Gateway, ListenerSet } from '../../source/objects.ts'
import { fault, faultBy, joinFaults, type Fault } from '../../model/conditions.ts'
import type { Context } from '../common/context.ts'
import { readCertificate, readConfigMapAuthority, readSecretAuthority, type Material } from '../common/secret.ts'

/** Client certificate validation as the Gateway writes it, which its ListenerSets share. */
export interface FrontendSource {
  readonly gateway: Gateway
  readonly tls: FrontendTls | undefined
}

export interface ServerTls {
  readonly tls: ListenerTlsMessage
  readonly messages: readonly SecretMessage[]
  readonly unresolved?: Fault
  readonly broken?: Fault
  readonly unacceptable?: Fault
}

type Resolved = { readonly message: SecretMessage } | { readonly fault: Fault }

/** A certificate for a reference of a Gateway or ListenerSet. The grant is checked before anything is said about the Secret. */
export function resolveCertificate(
  context: Context,
  owner: Gateway | ListenerSet,
  ref: ObjectRef,
  invalid: 'InvalidCertificateRef' | 'InvalidClientCertificateRef',
): Resolved {
  if (ref.group !== '' || ref.kind !== 'Secret')
    return { fault: fault(invalid, `certificate reference ${ref.name} is of kind ${ref.group || 'core'}/${ref.kind}; only Secret is supported`, 'PX1001') }
  const namespace = ref.namespace ?? owner.metadata.namespace
  if (!context.grants.permits({ group: GATEWAY_GROUP, kind: owner.kind, namespace: owner.metadata.namespace }, ref, namespace)) {
    return {
      fault: fault(
        'RefNotPermitted',
        `no ReferenceGrant in namespace ${namespace} permits ${owner.kind} of namespace ${owner.metadata.namespace} to refer to Secret ${ref.name}`,
        'PX1002',
      ),
    }
  }
  const secret = context.snapshot.get('Secret', namespace, ref.name)
  if (!secret) return { fault: fault(invalid, `Secret ${namespace}/${ref.name} not found`, 'PX1003') }
  const { message, error } = readCertificate(secret)
  return message ? { message } : { fault: fault(invalid, error, 'PX1004') }
}

function resolveAuthority(context: Context, gateway: Gateway, ref: ObjectRef): Resolved {
  if (ref.group !== '' || (ref.kind !== 'ConfigMap' && ref.kind !== 'Secret')) {
    return {
      fault: fault(
        'InvalidCACertificateKind',
        `CA reference ${ref.name} is of kind ${ref.group || 'core'}/${ref.kind}; only ConfigMap and Secret are supported`,
        'PX1005',
      ),
    }
  }
  const namespace = ref.namespace ?? gateway.metadata.namespace
  if (!context.grants.permits({ group: GATEWAY_GROUP, kind: 'Gateway', namespace: gateway.metadata.namespace }, ref, namespace)) {
    return {
      fault: fault(
        'RefNotPermitted',
        `no ReferenceGrant in namespace ${namespace} permits Gateway of namespace ${gateway.metadata.namespace} to refer to ${ref.kind} ${ref.name}`,
        'PX1002',
      ),
    }
  }
  const { snapshot } = context
  let material: Material | undefined
  if (ref.kind === 'ConfigMap') {
    const map = snapshot.get('ConfigMap', namespace, ref.name)
    material = map && readConfigMapAuthority(map)
  } else {
    const secret = snapshot.get('Secret', namespace, ref.name)
    material = secret && readSecretAuthority(secret, 'ca.crt')
  }
  if (!material) return { fault: fault('InvalidCACertificateRef', `${ref.kind} ${namespace}/${ref.name} not found`, 'PX1003') }
  return material.message ? { message: material.message } : { fault: fault('InvalidCACertificateRef', material.error ?? '', 'PX1006') }
}

/** The validation for a port: that of the port, else the default. It applies to HTTPS listeners only. */
function validationOf(tls: FrontendTls | undefined, port: number): FrontendValidation | undefined {
  const own = tls?.perPort?.find((each) => each.port === port)
  return own ? own.tls.validation : tls?.default.validation
}

/** Certificates and client validation of an HTTPS or TLS listener. Whatever cannot be resolved stays out, so that handshakes fail rather than fall through. */
export function resolveServerTls(
  context: Context,
  owner: Gateway | ListenerSet,
  spec: ListenerSpec,
  tls: ListenerTls,
  port: number,
  frontend: FrontendSource,
): ServerTls {
  const options = tls.options && Object.keys(tls.options).length > 0 ? { options: { ...tls.options } } : {}
  if (tls.mode === 'Passthrough') return { tls: { mode: 'Passthrough', ...options }, messages: [] }

  const messages: SecretMessage[] = []
  const refs = tls.certificateRefs ?? []
  const ref = refs[0]
  let bad: Fault | undefined
  if (refs.length !== 1 || !ref) bad = fault('InvalidCertificateRef', `tls.certificateRefs has ${refs.length} entries; exactly one is needed`, 'PX1007')
  else {
    const certificate = resolveCertificate(context, owner, ref, 'InvalidCertificateRef')
    if ('fault' in certificate) bad = certificate.fault
    else messages.push(certificate.message)
  }
  const certificates = messages.map((message) => message.key)

  const validation = spec.protocol === 'HTTPS' ? validationOf(frontend.tls, port) : undefined
  const authorities = (validation?.caCertificateRefs ?? []).map((each) => resolveAuthority(context, frontend.gateway, each))
  const caMessages = authorities.flatMap((each) => ('message' in each ? [each.message] : []))
  const caFaults = authorities.flatMap((each) => ('fault' in each ? [each.fault] : []))
  const clientValidation: ClientValidation | undefined = validation && { mode: validation.mode, caCertificates: caMessages.map((message) => message.key) }
  const isUnverifiable = validation !== undefined && caMessages.length === 0

  const unresolved = joinFaults([...(bad ? [bad] : []), ...caFaults])
  return {
    tls: { mode: 'Terminate', certificates, ...(clientValidation ? { clientValidation } : {}), ...options },
    messages: [...messages, ...caMessages],
    ...(unresolved ? { unresolved } : {}),
    ...(bad ? { broken: faultBy('Invalid', bad, 'Bad TLS configuration: ') } : {}),
    ...(isUnverifiable
      ? {
          unacceptable: fault(
            // operator.md §4.3: an entry of a ListenerSet has no reason of its own for it.
            owner.kind === 'ListenerSet' ? 'ListenersNotValid' : 'NoValidCACertificate',
            `no CA certificate to verify clients with: ${withoutCodes(joinFaults(caFaults)?.message ?? 'caCertificateRefs is empty')}`,
            'PX1008',
          ),
        }
      : {}),
  }
}
