import { AddressRanges, type DialRules } from '#api/address.ts'
import { withCode } from '#api/messages/code.ts'
import { GATEWAY_GROUP, RESERVED_PORTS } from '#api/names.ts'
import type { Secret as SecretMessage } from '#gen/config/types.ts'
import { chooseAddress } from '../../deploy/address.ts'
import { hasReplicas } from '../../deploy/replicas.ts'
import { permitsInProcess, permittedPluginImages, permittedUpstreams, resolveParameters } from '../../deploy/parameters.ts'
import type { DeployFailure, LevelParameters } from '../../deploy/types.ts'
import type { Gateway, GatewayClass, ListenerSet } from '../../source/objects.ts'
import { keyOf } from '../../source/objects.ts'
import { condition, conditionOf, faultBy, type Fault } from '../../model/conditions.ts'
import { findConflicts } from './conflicts.ts'
import type { Context } from '../common/context.ts'
import { listenerStatus, notAcceptedOf, notProgrammedOf, readListener, type ListenerState } from './listener.ts'
import { isOwnClass } from './gateway-class.ts'
import { readListenerSets, type ListenerSetState } from './listener-set.ts'
import { resolveCertificate } from './tls.ts'
import type { Condition, ObjectStatus } from '../../model/translation.ts'

/** Rules for connections of data planes, as those apply them (traffic.md §13.2, §13.3). */
interface GatewayUpstreams {
  readonly rules: DialRules
  readonly identityHosts: readonly string[]
}

/** A Gateway of this controller with its listeners and ListenerSets. */
export interface GatewayState {
  readonly gateway: Gateway
  readonly key: string
  /** Those of the Gateway itself. */
  readonly listeners: readonly ListenerState[]
  readonly sets: readonly ListenerSetState[]
  /** Certificate shown to backends (`spec.tls.backend`), when it is set: a message, or why there is none. */
  readonly clientCertificate: { readonly message: SecretMessage } | { readonly fault: Fault } | undefined
  /** Why no data plane can be created: a fault in parametersRef or addresses. */
  readonly undeployable: DeployFailure | undefined
  /** The data plane can have several pods. */
  readonly hasReplicas: boolean
  /** Whether its parameters permit plugins with isolation InProcess. */
  readonly permitsInProcess: boolean
  readonly pluginImages: readonly string[]
  /** Empty if they do not resolve. */
  readonly parameters: LevelParameters
  /** What its data planes connect to; undefined if the parameters do not resolve. */
  readonly upstreams: GatewayUpstreams | undefined
}

/** Reads a Gateway with the ListenerSets that name it; undefined if its class is not ours. */
export function readGateway(context: Context, gateway: Gateway, listenerSets: readonly ListenerSet[]): GatewayState | undefined {
  const gatewayClass = context.snapshot.get('GatewayClass', '', gateway.spec.gatewayClassName)
  if (!gatewayClass || !isOwnClass(gatewayClass)) return undefined
  const frontend = { gateway, tls: gateway.spec.tls?.frontend }
  const listeners = gateway.spec.listeners.map((spec) => readListener(context, gateway, spec, frontend))
  const sets = readListenerSets(context, gateway, listenerSets, frontend)
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
    ...checkDeployment(context, gateway, gatewayClass),
  }
}

/** All listeners that are served: the Gateway's and its sets'. */
export function servedListeners(state: GatewayState): ListenerState[] {
  return [...state.listeners, ...state.sets.flatMap((set) => set.listeners)].filter((listener) => !listener.rejected)
}

function checkDeployment(
  { snapshot, options }: Context,
  gateway: Gateway,
  gatewayClass: GatewayClass,
): Pick<GatewayState, 'undeployable' | 'hasReplicas' | 'permitsInProcess' | 'pluginImages' | 'parameters' | 'upstreams'> {
  const resolved = resolveParameters(gateway, gatewayClass, (namespace, name) => snapshot.get('ProxyParameters', namespace, name))
  if (!resolved.ok) return { undeployable: resolved, hasReplicas: false, permitsInProcess: false, pluginImages: [], parameters: {}, upstreams: undefined }
  const address = chooseAddress(gateway)
  return {
    undeployable: address.ok ? undefined : address,
    hasReplicas: hasReplicas(resolved.parameters),
    permitsInProcess: permitsInProcess(resolved.parameters),
    pluginImages: permittedPluginImages(resolved.parameters),
    parameters: resolved.parameters,
    upstreams: readUpstreams(resolved.parameters, options.isStandalone),
  }
}

function readUpstreams(parameters: LevelParameters, isStandalone: boolean): GatewayUpstreams {
  const { addresses, identityHosts } = permittedUpstreams(parameters)
  const permitted = new AddressRanges(addresses)
  // Interface addresses, and the address of the operator, are known in the data plane only.
  return { rules: { isLoopbackAllowed: isStandalone, permitted, ports: () => RESERVED_PORTS, addresses: () => [] }, identityHosts }
}

function acceptedOf({ gateway, listeners, undeployable }: GatewayState): Condition {
  const { generation } = gateway.metadata
  if (undeployable?.condition === 'Accepted') return condition('Accepted', false, undeployable.reason, undeployable.message, generation)
  const faulty = listeners.flatMap((listener) => {
    const cause = notAcceptedOf(listener) ?? notProgrammedOf(listener)
    return cause ? [`${listener.spec.name}: ${cause.message}`] : []
  })
  if (faulty.length === 0) return condition('Accepted', true, 'Accepted', 'Successfully accepted Gateway', generation)
  const isAccepted = listeners.some((listener) => !notAcceptedOf(listener))
  return condition('Accepted', isAccepted, 'ListenersNotValid', `Some listeners are not accepted: ${faulty.join('; ')}`, generation)
}

export function gatewayStatus(state: GatewayState): ObjectStatus {
  const { gateway, listeners, sets, clientCertificate, undeployable } = state
  const { generation, namespace, name } = gateway.metadata
  const accepted = acceptedOf(state)
  const notProgrammed = accepted.status === 'False' ? faultBy('Invalid', accepted as Fault) : undeployable
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
        withCode('Clients without a valid certificate are accepted: a validation mode is AllowInsecureFallback', 'PX1017'),
        generation,
      ),
    )
  }
  if (gateway.spec.defaultScope === 'All') {
    const message = 'defaultScope is not supported and has no effect: routes attach by their parentRefs only'
    conditions.push(condition('PartiallyInvalid', true, 'UnsupportedValue', withCode(message, 'PX1028'), generation))
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
