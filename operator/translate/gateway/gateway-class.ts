import { CONTROLLER_NAME, GATEWAY_CLASS, GATEWAY_GROUP } from '#api/names.ts'
import type { GatewayClass } from '../../source/objects.ts'
import { condition } from '../../model/conditions.ts'
import type { ObjectStatus } from '../../model/translation.ts'

/** Gateway API features by the names of bundle 1.6, sorted: exactly what passes in the kept run of the official suite (e2e/conformance/results.yaml). */
const supportedFeatures: readonly string[] = [
  'BackendTLSPolicy',
  'BackendTLSPolicySANValidation',
  'GRPCRoute',
  'GRPCRouteNamedRouteRule',
  'Gateway',
  'GatewayAddressEmpty',
  'GatewayBackendClientCertificate',
  'GatewayFrontendClientCertificateValidation',
  'GatewayFrontendClientCertificateValidationInsecureFallback',
  'GatewayHTTPListenerIsolation',
  'GatewayHTTPSListenerDetectMisdirectedRequests',
  'GatewayInfrastructure',
  'GatewayPort8080',
  'GatewayStaticAddresses',
  'HTTPRoute',
  'HTTPRoute303RedirectStatusCode',
  'HTTPRoute307RedirectStatusCode',
  'HTTPRoute308RedirectStatusCode',
  'HTTPRouteBackendProtocolH2C',
  'HTTPRouteBackendProtocolWebSocket',
  'HTTPRouteBackendRequestHeaderModification',
  'HTTPRouteBackendTimeout',
  'HTTPRouteCORS',
  'HTTPRouteDestinationPortMatching',
  'HTTPRouteHostRewrite',
  'HTTPRouteMethodMatching',
  'HTTPRouteNamedRouteRule',
  'HTTPRouteParentRefPort',
  'HTTPRoutePathRedirect',
  'HTTPRoutePathRewrite',
  'HTTPRoutePortRedirect',
  'HTTPRouteQueryParamMatching',
  'HTTPRouteRequestMirror',
  'HTTPRouteRequestMultipleMirrors',
  'HTTPRouteRequestPercentageMirror',
  'HTTPRouteRequestTimeout',
  'HTTPRouteResponseHeaderModification',
  'HTTPRouteRetry',
  'HTTPRouteRetryBackendTimeout',
  'HTTPRouteRetryConnectionError',
  'HTTPRouteSchemeRedirect',
  'ListenerSet',
  'ReferenceGrant',
  'TCPRoute',
  'TLSRoute',
  'TLSRouteModeMixed',
  'TLSRouteModeTerminate',
]

/** Whether a class has our controllerName. */
export const isOwnClass = ({ spec }: GatewayClass): boolean => spec.controllerName === CONTROLLER_NAME

/** Features are listed on the class that the operator itself manages; a bad parametersRef shows on the Gateways. */
export function gatewayClassStatus(gatewayClass: GatewayClass): ObjectStatus {
  const { name, generation } = gatewayClass.metadata
  return {
    group: GATEWAY_GROUP,
    kind: 'GatewayClass',
    name,
    status: {
      conditions: [condition('Accepted', true, 'Accepted', `GatewayClass accepted by the ${CONTROLLER_NAME} controller`, generation)],
      ...(name === GATEWAY_CLASS ? { supportedFeatures: supportedFeatures.map((feature) => ({ name: feature })) } : {}),
    },
  }
}
