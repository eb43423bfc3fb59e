import { GATEWAY_GROUP, GROUP } from '#api/names.ts'

/** A rule of a Role or ClusterRole. */
export interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly verbs: readonly string[]
  readonly resourceNames?: readonly string[]
}

const rule = (group: string, resources: readonly string[], ...verbs: string[]): Rule => ({ apiGroups: [group], resources, verbs })
const statusOf = (resources: readonly string[]): string[] => resources.map((resource) => `${resource}/status`)

const withStatus = ['backendtlspolicies', 'gatewayclasses', 'gateways', 'grpcroutes', 'httproutes', 'listenersets', 'tcproutes', 'tlsroutes']
const ownWithStatus = ['proxybackends', 'proxypolicies']
const INFERENCE = 'inference.networking.k8s.io'

/** InferencePools and their endpoints, which are pods. */
const inferenceRules: readonly Rule[] = [
  rule('', ['pods'], 'list', 'watch'),
  rule(INFERENCE, ['inferencepools'], 'get', 'list', 'watch'),
  rule(INFERENCE, ['inferencepools/status'], 'patch'),
]

/** Cluster-wide rules: sources of the config, statuses, GatewayClass `proxy`, authentication of data planes. */
export const clusterRules = (isInference: boolean): Rule[] => [
  rule('', ['configmaps', 'namespaces', 'secrets', 'services'], 'list', 'watch'),
  rule('discovery.k8s.io', ['endpointslices'], 'list', 'watch'),
  rule(GATEWAY_GROUP, [...withStatus, 'referencegrants'].sort(), 'list', 'watch'),
  rule(GROUP, ['proxybackends', 'proxyparameters', 'proxypolicies'], 'list', 'watch'),
  rule(GATEWAY_GROUP, withStatus, 'get'),
  rule(GROUP, ownWithStatus, 'get'),
  rule(GATEWAY_GROUP, statusOf(withStatus), 'patch'),
  rule(GROUP, statusOf(ownWithStatus), 'patch'),
  ...(isInference ? inferenceRules : []),
  rule(GATEWAY_GROUP, ['gatewayclasses'], 'create', 'patch'),
  rule('authentication.k8s.io', ['tokenreviews'], 'create'),
]

/** Cluster-wide rules for the objects of Gateways and MCP servers and their Events. delete is for MCP servers, and for dependents of Gateways. */
export const deployerRules: readonly Rule[] = [
  rule('', ['serviceaccounts'], 'create', 'delete', 'get', 'list', 'patch', 'watch'),
  rule('', ['configmaps', 'secrets'], 'create', 'get', 'patch'),
  rule('', ['services'], 'create', 'delete', 'get', 'patch'),
  rule('apps', ['deployments'], 'create', 'delete', 'get', 'list', 'patch', 'watch'),
  rule('policy', ['poddisruptionbudgets'], 'create', 'delete', 'get', 'list', 'patch', 'watch'),
  rule('autoscaling', ['horizontalpodautoscalers'], 'create', 'delete', 'get', 'list', 'patch', 'watch'),
  rule('', ['events'], 'create', 'patch'),
]

/** Rules in the namespace of the operator: leader election, and deletion of stored key sets (`deployerRules` permits writing them). */
export const localRules: readonly Rule[] = [
  rule('coordination.k8s.io', ['leases'], 'create'),
  { ...rule('coordination.k8s.io', ['leases'], 'get', 'update'), resourceNames: ['proxy-operator'] },
  rule('', ['configmaps'], 'delete'),
]
