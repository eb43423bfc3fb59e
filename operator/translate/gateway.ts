import { GATEWAY_GROUP, GROUP } from '#api/names.ts'
import type { Secret as SecretMessage } from '#gen/config/types.ts'
import { isIP } from 'node:net'
import type { Gateway, GatewayClass } from '../source/objects.ts'
import { keyOf } from '../source/objects.ts'
import { condition, conditionOf, fault, type Fault } from '../status/conditions.ts'
import { findConflicts } from './conflicts.ts'
import type { Context } from './context.ts'
import { listenerStatus, notAcceptedOf, notProgrammedOf, readListener, type ListenerState } from './listener.ts'
import type { ListenerSetState } from './listenerset.ts'
import { readListenerSets } from './listenerset.ts'
import { resolveCertificate } from './tls.ts'
import type { Condition, ObjectStatus } from './types.ts'

/** A Gateway of ours with its listeners and ListenerSets. */
export interface GatewayState {
  readonly gateway: Gateway
  readonly key: string
  /** Those of the Gateway itself. */
  readonly listeners: readonly ListenerState[]
  readonly sets: readonly ListenerSetState[]
  /** Certificate shown to backends (`spec.tls.backend`), when it is set: a message, or why there is none. */
  readonly clientCertificate: { readonly message: SecretMessage } | { readonly fault: Fault } | undefined
  readonly parameters: Fault | undefined
}

/** Reads every Gateway whose class is in `classes` (name -> class). */
export function readGateways(context: Context, classes: ReadonlyMap<string, GatewayClass>): GatewayState[] {
  const setsOf = readListenerSets(context)
  return context.snapshot.list('Gateway').flatMap((gateway) => {
    const gatewayClass = classes.get(gateway.spec.gatewayClassName)
    return gatewayClass ? [readGateway(context, gateway, gatewayClass, setsOf)] : []
  })
}

function readGateway(context: Context, gateway: Gateway, gatewayClass: GatewayClass, setsOf: ReturnType<typeof readListenerSets>): GatewayState {
  const frontend = { gateway, tls: gateway.spec.tls?.frontend }
  const listeners = gateway.spec.listeners.map((spec) => readListener(context, gateway, spec, frontend))
  const sets = setsOf(gateway, frontend)
  findConflicts(
    listeners,
    sets.flatMap((set) => set.listeners),
  )
  const ref = gateway.spec.tls?.backend?.clientCertificateRef
  return {
    gateway,
    key: keyOf(gateway),
    listeners,
    sets,
    clientCertificate: ref && resolveCertificate(context, gateway, ref, 'InvalidClientCertificateRef'),
    parameters: checkParameters(context, gateway, gatewayClass) ?? checkIpAddresses(gateway),
  }
}

/** All listeners that are served: the Gateway's and its sets'. */
export function servedListeners(state: GatewayState): ListenerState[] {
  return [...state.listeners, ...state.sets.flatMap((set) => set.listeners)].filter((listener) => !listener.rejected)
}

function checkParameters(context: Context, gateway: Gateway, gatewayClass: GatewayClass): Fault | undefined {
  const fromClass = gatewayClass.spec.parametersRef
  if (fromClass) {
    if (fromClass.group !== GROUP || fromClass.kind !== 'ProxyParameters') {
      return fault(
        'InvalidParameters',
        `GatewayClass ${gatewayClass.metadata.name} references parameters of a type other than ProxyParameters: ${fromClass.name}`,
      )
    }
    if (fromClass.namespace === undefined) return fault('InvalidParameters', `parametersRef of GatewayClass ${gatewayClass.metadata.name} has no namespace`)
    if (!context.snapshot.get('ProxyParameters', fromClass.namespace, fromClass.name)) {
      return fault('InvalidParameters', `for GatewayClass ${gatewayClass.metadata.name}, ProxyParameters ${fromClass.namespace}/${fromClass.name} not found`)
    }
  }
  const own = gateway.spec.infrastructure?.parametersRef
  if (!own) return undefined
  const { namespace } = gateway.metadata
  if (own.group !== GROUP || own.kind !== 'ProxyParameters') {
    return fault(
      'InvalidParameters',
      `infrastructure.parametersRef on Gateway ${keyOf(gateway)} references unsupported type: group=${own.group} kind=${own.kind}`,
    )
  }
  return context.snapshot.get('ProxyParameters', namespace, own.name)
    ? undefined
    : fault('InvalidParameters', `ProxyParameters ${namespace}/${own.name} not found for Gateway ${keyOf(gateway)}`)
}

/** At most one fixed IP can be asked of a load balancer (operator.md §2.6). */
function checkIpAddresses(gateway: Gateway): Fault | undefined {
  const values = (gateway.spec.addresses ?? []).flatMap((each) => (each.type === 'IPAddress' && each.value ? [each.value] : []))
  const bad = values.find((value) => isIP(value) === 0)
  if (bad !== undefined) return fault('InvalidParameters', `address ${bad} is not an IP address`)
  return values.length > 1 ? fault('InvalidParameters', `multiple addresses: ${values.join(', ')}; at most one IP address is supported`) : undefined
}

function acceptedOf({ gateway, listeners, parameters }: GatewayState): Condition {
  const { generation } = gateway.metadata
  if (parameters) return condition('Accepted', false, parameters.reason, parameters.message, generation)
  const unsupported = gateway.spec.addresses?.find((each) => each.type !== 'IPAddress' && each.type !== 'Hostname')
  if (unsupported) return condition('Accepted', false, 'UnsupportedAddress', `unknown address kind ${unsupported.type}; use IPAddress`, generation)
  const faulty = listeners.flatMap((listener) => {
    const cause = notAcceptedOf(listener) ?? notProgrammedOf(listener)
    return cause ? [`${listener.spec.name}: ${cause.message}`] : []
  })
  if (faulty.length === 0) return condition('Accepted', true, 'Accepted', 'Successfully accepted Gateway', generation)
  const isAccepted = listeners.some((listener) => !notAcceptedOf(listener))
  return condition('Accepted', isAccepted, 'ListenersNotValid', `Some listeners are not accepted: ${faulty.join('; ')}`, generation)
}

export function gatewayStatus(state: GatewayState): ObjectStatus {
  const { gateway, listeners, sets, clientCertificate } = state
  const { generation, namespace, name } = gateway.metadata
  const accepted = acceptedOf(state)
  const hostname = gateway.spec.addresses?.find((each) => each.type === 'Hostname')
  const notProgrammed =
    accepted.status === 'False'
      ? fault('Invalid', accepted.message)
      : hostname
        ? fault('AddressNotUsable', `address ${hostname.value ?? ''} is a hostname; only an IP address can be assigned`)
        : undefined
  const conditions = [accepted, conditionOf('Programmed', notProgrammed, 'Programmed', 'Successfully programmed Gateway', generation)]
  if (clientCertificate) {
    conditions.push(
      conditionOf(
        'ResolvedRefs',
        'fault' in clientCertificate ? clientCertificate.fault : undefined,
        'ResolvedRefs',
        'Client certificate for backends is valid',
        generation,
      ),
    )
  }
  const frontend = gateway.spec.tls?.frontend
  const validations = [frontend?.default.validation, ...(frontend?.perPort ?? []).map((each) => each.tls.validation)]
  if (validations.some((validation) => validation?.mode === 'AllowInsecureFallback')) {
    conditions.push(
      condition(
        'InsecureFrontendValidationMode',
        true,
        'ConfigurationChanged',
        'Clients without a valid certificate are let in: a validation mode is AllowInsecureFallback',
        generation,
      ),
    )
  }
  return {
    group: GATEWAY_GROUP,
    kind: 'Gateway',
    namespace,
    name,
    status: {
      conditions,
      listeners: listeners.map(listenerStatus),
      attachedListenerSets: sets.filter((set) => set.isAccepted()).length,
    },
  }
}
