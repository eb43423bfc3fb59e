import type { Names } from './names.ts'
import type { Part, Values } from './values.ts'

/** Default security context of the container: no privileges, read-only root file system. */
const restricted = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  runAsUser: 10_101,
  seccompProfile: { type: 'RuntimeDefault' },
}
/** Name of a volume and of its directory. */
const REGISTRY_FILES = 'plugin-registries'
const isSet = (part: object): boolean => Object.keys(part).length > 0
/** `{ [field]: part }`; `{}` if the part is empty. */
const optional = (field: string, part: object | string): Part => (part === '' || (typeof part === 'object' && !isSet(part)) ? {} : { [field]: part })

/** Whether several replicas are certain: by replicaCount, or by the minimum of the autoscaler. */
export function isReplicated({ controller: { horizontalPodAutoscaler, replicaCount } }: Values): boolean {
  return (isSet(horizontalPodAutoscaler) ? Number(horizontalPodAutoscaler['minReplicas'] ?? 1) : replicaCount) > 1
}

/** Spec of the operator's Deployment. */
export function describeDeployment(names: Names, values: Values): Part {
  const { controller } = values
  return {
    ...(isSet(controller.horizontalPodAutoscaler) ? {} : { replicas: controller.replicaCount }),
    ...optional('strategy', controller.strategy),
    selector: { matchLabels: names.selector },
    template: {
      metadata: { labels: names.selector, annotations: annotatePods(values) },
      spec: {
        serviceAccountName: names.serviceAccount,
        ...optional('imagePullSecrets', values.imagePullSecrets),
        ...optional('priorityClassName', controller.priorityClassName),
        ...optional('securityContext', values.podSecurityContext),
        containers: [describeContainer(names, values)],
        ...optional('volumes', listVolumes(values)),
        ...optional('affinity', values.affinity),
        ...optional('nodeSelector', values.nodeSelector),
        ...optional('tolerations', values.tolerations),
        ...optional('topologySpreadConstraints', spreadPods(names, values)),
      },
    },
  }
}

/** Constraints of the values; without any, several replicas are spread over nodes and zones as far as possible. */
function spreadPods({ selector }: Names, values: Values): Part[] {
  const labelSelector = { matchLabels: selector }
  if (values.topologySpreadConstraints.length > 0) return values.topologySpreadConstraints.map((each) => ({ labelSelector, ...each }))
  if (!isReplicated(values)) return []
  return ['kubernetes.io/hostname', 'topology.kubernetes.io/zone'].map((topologyKey) => ({
    maxSkew: 1,
    topologyKey,
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector,
    // Without it, a rollout would count the pods that it replaces.
    matchLabelKeys: ['pod-template-hash'],
  }))
}

/** Adds the annotations by which Prometheus finds the metrics. */
function annotatePods({ podAnnotations, controller }: Values): Part {
  return { 'prometheus.io/port': `${controller.service.ports.metrics}`, 'prometheus.io/path': '/metrics', ...podAnnotations }
}

function describeContainer(names: Names, values: Values): Part {
  const { controller, image, securityContext } = values
  const { registry, repository, pullPolicy } = controller.image
  const host = registry || image.registry
  const { gwGrpc, health, metrics } = controller.service.ports
  const port = (name: string, containerPort: number): object => ({ name, containerPort, protocol: 'TCP' })
  const httpGet = { path: '/readyz', port: 'health' }
  return {
    name: 'controller',
    image: `${host === '' ? '' : `${host}/`}${repository}:${chooseTag(names, values)}`,
    imagePullPolicy: pullPolicy || image.pullPolicy,
    securityContext: isSet(securityContext) ? securityContext : restricted,
    env: listEnv(names, values),
    ports: [port('grpc-xds', gwGrpc), port('health', health), port('metrics', metrics)],
    readinessProbe: { httpGet, initialDelaySeconds: 1, periodSeconds: 10, timeoutSeconds: 2 },
    startupProbe: { httpGet, periodSeconds: 1, failureThreshold: 120, timeoutSeconds: 2 },
    ...optional('resources', values.resources),
    ...optional('volumeMounts', listVolumes(values).length === 0 ? [] : [{ name: REGISTRY_FILES, mountPath: `/etc/proxy/${REGISTRY_FILES}`, readOnly: true }]),
  }
}

/** A volume with the files for registries of plugins, if there are any. */
function listVolumes({ controller: { pluginRegistries } }: Values): Part[] {
  const { ca, credentialsSecretName } = pluginRegistries
  const source = (kind: string, name: string, key: string, path: string): Part[] => (name === '' ? [] : [{ [kind]: { name, items: [{ key, path }] } }])
  const sources = [
    ...source('configMap', ca.configMapName, ca.key, 'ca.crt'),
    ...source('secret', ca.secretName, ca.key, 'ca.crt'),
    ...source('secret', credentialsSecretName, '.dockerconfigjson', 'config.json'),
  ]
  return sources.length === 0 ? [] : [{ name: REGISTRY_FILES, projected: { sources } }]
}

/** Variables that name files for registries of plugins. */
function listRegistryFiles({ ca, credentialsSecretName }: Values['controller']['pluginRegistries']): Record<string, string> {
  if (ca.configMapName !== '' && ca.secretName !== '') throw new Error('controller.pluginRegistries.ca: write either configMapName or secretName')
  return {
    ...(ca.configMapName || ca.secretName ? { PROXY_REGISTRY_CA_FILE: `/etc/proxy/${REGISTRY_FILES}/ca.crt` } : {}),
    ...(credentialsSecretName ? { PROXY_REGISTRY_CONFIG_FILE: `/etc/proxy/${REGISTRY_FILES}/config.json` } : {}),
  }
}

/** Tag of the operator's image, as written; default: that of the release. */
function chooseTag({ version }: Names, { controller, image }: Values): string {
  return controller.image.tag || image.tag || `v${version}`
}

function listEnv(names: Names, { controller, image, proxy, ...values }: Values): Part[] {
  const fromPodField = (name: string, fieldPath: string): Part => ({ name, valueFrom: { fieldRef: { fieldPath } } })
  const { gwGrpc, health, metrics } = controller.service.ports
  const env: Record<string, string> = {
    PROXY_LOG_LEVEL: controller.logLevel,
    PROXY_XDS_SERVICE_NAME: names.full,
    PROXY_XDS_SERVICE_PORT: `${gwGrpc}`,
    PROXY_XDS_MODE: controller.xds.tls.enabled ? 'tls' : 'plaintext',
    PROXY_HEALTH_PORT: `${health}`,
    PROXY_METRICS_PORT: `${metrics}`,
    PROXY_DISCOVERY_NAMESPACE_SELECTORS: toSortedJson(values.discoveryNamespaceSelectors),
    PROXY_GATEWAY_CLASS_PARAMETERS_REFS: toSortedJson(values.gatewayClassParametersRefs),
    PROXY_BACKEND_REF_GRANT_MODE: controller.backendRefGrantMode,
    PROXY_ENABLE_INFER_EXT: `${values.inferenceExtension.enabled}`,
    PROXY_IMAGE_REGISTRY: proxy.image.registry || image.registry,
    PROXY_IMAGE_REPOSITORY: proxy.image.repository,
    // If unset, data planes have the version of the operator.
    ...(proxy.image.tag || image.tag ? { PROXY_IMAGE_TAG: proxy.image.tag || image.tag } : {}),
    ...listRegistryFiles(controller.pluginRegistries),
    // Buffers, code and the runtime need memory besides the heap.
    ...(values.resources.limits?.['memory'] === undefined ? {} : { NODE_OPTIONS: '--max-old-space-size-percentage=70' }),
  }
  const { extraEnv } = controller
  return [
    fromPodField('POD_NAMESPACE', 'metadata.namespace'),
    fromPodField('POD_NAME', 'metadata.name'),
    ...sortKeys(env)
      .filter((name) => !Object.hasOwn(extraEnv, name))
      .map((name) => ({ name, value: env[name] })),
    ...sortKeys(extraEnv).map((name) => toVariable(name, extraEnv[name])),
  ]
}

const sortKeys = (map: object): string[] => Object.keys(map).toSorted()

function toVariable(name: string, value: unknown): Part {
  if (typeof value !== 'object' || value === null) return { name, value: String(value) }
  if ('value' in value === 'valueFrom' in value) throw new Error(`controller.extraEnv.${name}: write either value or valueFrom`)
  return { name, ...value }
}

/** JSON with sorted keys, as Helm's toJson: equal values must not restart the pods. */
function toSortedJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  )
}
