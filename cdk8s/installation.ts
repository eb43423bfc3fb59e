import { ApiObject, Chart } from 'cdk8s'
import type { Construct } from 'constructs'
import { describeDeployment, isReplicated } from './deployment.ts'
import { describeMonitoring } from './monitoring.ts'
import { nameObjects, type Names, type Release } from './names.ts'
import { clusterRules, deployerRules, localRules } from './rules.ts'
import { readChart, readDashboards, readValues, type ValueOverrides, type Part, type ServiceValues, type Values } from './values.ts'

/**
 * The operator as a cdk8s chart: the same objects as the Helm chart `charts/proxy` for the same values. Does not contain the CRDs;
 * apply `charts/proxy-crds` first.
 *
 * @example
 * new Installation(app, 'gateways', { release: { name: 'proxy', namespace: 'proxy-system' }, values: { controller: { replicaCount: 2 } } })
 */
export class Installation extends Chart {
  constructor(scope: Construct, id: string, { release, values = {} }: { readonly release: Release; readonly values?: ValueOverrides }) {
    super(scope, id, { disableResourceNameHashes: true })
    const all = readValues(values)
    const names = nameObjects(readChart(), release, all)
    for (const { kind, ...rest } of [
      ...describeAccess(names, all),
      ...describeService(names, all),
      ...describeRunning(names, all),
      ...describeDashboards(names, all),
      ...describeMonitoring(names, all),
    ])
      new ApiObject(this, `${kind}-${rest.metadata.name}`, { kind, ...rest })
  }
}

/** A Kubernetes object. */
interface Described {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly [field: string]: unknown
}

const annotated = (annotations: Readonly<Record<string, string>>): object => (Object.keys(annotations).length > 0 ? { annotations } : {})
const isSet = (map: Part): boolean => Object.keys(map).length > 0
const RBAC = 'rbac.authorization.k8s.io'

/** ServiceAccount, roles and bindings. */
function describeAccess(names: Names, { serviceAccount, inferenceExtension }: Values): Described[] {
  const { labels, namespace } = names
  const apiVersion = `${RBAC}/v1`
  const subjects = [{ kind: 'ServiceAccount', name: names.serviceAccount, namespace }]
  const local = { name: `${names.cluster}-local`, namespace, labels }
  const account: Described = {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { ...names.metadata(names.serviceAccount), ...annotated(serviceAccount.annotations) },
  }
  return [
    ...(serviceAccount.create ? [account] : []),
    ...[
      { name: names.cluster, rules: clusterRules(inferenceExtension.enabled) },
      { name: `${names.cluster}-deployer`, rules: deployerRules },
    ].flatMap(({ name, rules }): Described[] => [
      { apiVersion, kind: 'ClusterRole', metadata: { name, labels }, rules },
      { apiVersion, kind: 'ClusterRoleBinding', metadata: { name, labels }, roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name }, subjects },
    ]),
    { apiVersion, kind: 'Role', metadata: local, rules: localRules },
    { apiVersion, kind: 'RoleBinding', metadata: local, roleRef: { apiGroup: RBAC, kind: 'Role', name: local.name }, subjects },
  ]
}

/** Fields of a ServiceSpec that are omitted if empty. */
const optionalFields = [
  'clusterIP',
  'clusterIPs',
  'externalIPs',
  'externalName',
  'externalTrafficPolicy',
  'internalTrafficPolicy',
  'ipFamilies',
  'ipFamilyPolicy',
  'loadBalancerClass',
  'loadBalancerIP',
  'loadBalancerSourceRanges',
  'publishNotReadyAddresses',
  'sessionAffinity',
  'sessionAffinityConfig',
  'trafficDistribution',
] as const

function describeService(names: Names, { controller: { service } }: Values): Described[] {
  if (!service.enabled) return []
  const port = (name: string, number: number): object => ({ name, port: number, targetPort: name, protocol: 'TCP' })
  const { gwGrpc, health, metrics } = service.ports
  const metadata = { ...names.metadata(names.full), labels: { ...service.extraLabels, ...names.labels }, ...annotated(service.annotations) }
  const ports = [port('grpc-xds', gwGrpc), port('health', health), port('metrics', metrics)]
  return [{ apiVersion: 'v1', kind: 'Service', metadata, spec: { type: service.type, ...pickService(service), ports, selector: names.selector } }]
}

function pickService(service: ServiceValues): Part {
  const isEmpty = (value: unknown): boolean => !value || (typeof value === 'object' && Object.keys(value).length === 0)
  const present = optionalFields.filter((field) => !isEmpty(service[field]))
  const nullable = (['allocateLoadBalancerNodePorts', 'healthCheckNodePort'] as const).filter((field) => service[field] !== null && service[field] !== '')
  // `--set-string` passes these values as strings.
  const read = (value: unknown): unknown => (typeof value === 'string' ? JSON.parse(value) : value)
  return Object.fromEntries([...present.map((field) => [field, service[field]]), ...nullable.map((field) => [field, read(service[field])])])
}

/** The Deployment and the objects that refer to it. */
function describeRunning(names: Names, values: Values): Described[] {
  const { horizontalPodAutoscaler, verticalPodAutoscaler, networkPolicy } = values.controller
  const own = values.controller.podDisruptionBudget
  const podDisruptionBudget = !isSet(own) && isReplicated(values) ? { maxUnavailable: 1 } : own
  const metadata = names.metadata(names.full)
  const target = { apiVersion: 'apps/v1', kind: 'Deployment', name: names.full }
  const selector = { matchLabels: names.selector }
  const described: [boolean, Described][] = [
    [
      true,
      {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { ...metadata, ...annotated(values.deploymentAnnotations) },
        spec: describeDeployment(names, values),
      },
    ],
    [isSet(podDisruptionBudget), { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata, spec: { ...podDisruptionBudget, selector } }],
    [
      isSet(horizontalPodAutoscaler),
      { apiVersion: 'autoscaling/v2', kind: 'HorizontalPodAutoscaler', metadata, spec: { ...horizontalPodAutoscaler, scaleTargetRef: target } },
    ],
    [
      isSet(verticalPodAutoscaler),
      { apiVersion: 'autoscaling.k8s.io/v1', kind: 'VerticalPodAutoscaler', metadata, spec: { ...verticalPodAutoscaler, targetRef: target } },
    ],
    [networkPolicy.enabled, { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata, spec: describeNetworkPolicy(names, values) }],
  ]
  return described.flatMap(([isWanted, object]) => (isWanted ? [object] : []))
}

function describeDashboards(names: Names, { dashboards }: Values): Described[] {
  if (!dashboards.enabled) return []
  const metadata = names.metadata(`${names.full.slice(0, 52).replace(/-$/, '')}-dashboards`)
  const labels = { ...dashboards.labels, ...names.labels }
  return [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...metadata, labels, ...annotated(dashboards.annotations) }, data: readDashboards() }]
}

function describeNetworkPolicy(names: Names, { controller: { networkPolicy } }: Values): Part {
  const { xdsFrom, metricsFrom } = networkPolicy
  const dataPlanes = { namespaceSelector: {}, podSelector: { matchExpressions: [{ key: 'gateway.networking.k8s.io/gateway-name', operator: 'Exists' }] } }
  const ports = (port: string): object[] => [{ port, protocol: 'TCP' }]
  return {
    podSelector: { matchLabels: names.selector },
    policyTypes: ['Ingress'],
    ingress: [
      { ports: ports('grpc-xds'), from: [dataPlanes, ...xdsFrom] },
      { ports: ports('health') },
      { ports: ports('metrics'), ...(metricsFrom.length > 0 ? { from: metricsFrom } : {}) },
    ],
  }
}
