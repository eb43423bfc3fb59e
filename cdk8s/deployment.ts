import type { Names } from './names.ts'
import { readChart, type Part, type Values } from './values.ts'

/** What a container gets that is given nothing else: no privileges, nothing to write to. */
const restricted = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  runAsUser: 10_101,
  seccompProfile: { type: 'RuntimeDefault' },
}
const isSet = (part: object): boolean => Object.keys(part).length > 0
/** `{[field]: part}`, or nothing where the part is empty. */
const given = (field: string, part: object | string): Part => (part === '' || (typeof part === 'object' && !isSet(part)) ? {} : { [field]: part })

/** Spec of the operator's Deployment. */
export function describeDeployment(names: Names, values: Values): Part {
  const { controller } = values
  return {
    ...(isSet(controller.horizontalPodAutoscaler) ? {} : { replicas: controller.replicaCount }),
    ...given('strategy', controller.strategy),
    selector: { matchLabels: names.selector },
    template: {
      metadata: { labels: names.selector, annotations: annotatePods(values) },
      spec: {
        serviceAccountName: names.serviceAccount,
        ...given('imagePullSecrets', values.imagePullSecrets),
        ...given('priorityClassName', controller.priorityClassName),
        ...given('securityContext', values.podSecurityContext),
        containers: [describeContainer(names, values)],
        ...given('affinity', values.affinity),
        ...given('nodeSelector', values.nodeSelector),
        ...given('tolerations', values.tolerations),
      },
    },
  }
}

/** Whoever scrapes finds the metrics port alone. */
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
    image: `${host === '' ? '' : `${host}/`}${repository}:${chooseTag(values)}`,
    imagePullPolicy: pullPolicy || image.pullPolicy,
    securityContext: isSet(securityContext) ? securityContext : restricted,
    env: listEnv(names, values),
    ports: [port('grpc-xds', gwGrpc), port('health', health), port('metrics', metrics)],
    readinessProbe: { httpGet, initialDelaySeconds: 1, periodSeconds: 10, timeoutSeconds: 2 },
    startupProbe: { httpGet, periodSeconds: 1, failureThreshold: 120, timeoutSeconds: 2 },
    ...given('resources', values.resources),
  }
}

/** Versions are tagged with a v. */
function chooseTag({ controller, image }: Values): string {
  const tag = controller.image.tag || image.tag || readChart().appVersion
  return /^\d+\.\d+\.\d+([-+].*)?$/.test(tag) ? `v${tag}` : tag
}

function listEnv(names: Names, { controller, image, proxy, ...values }: Values): Part[] {
  const ofPod = (name: string, fieldPath: string): Part => ({ name, valueFrom: { fieldRef: { fieldPath } } })
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
    PROXY_ENABLE_INFER_EXT: `${values.inferenceExtension.enabled}`,
    PROXY_IMAGE_REGISTRY: proxy.image.registry || image.registry,
    PROXY_IMAGE_REPOSITORY: proxy.image.repository,
    // Without it, data planes have the operator's own version.
    ...(proxy.image.tag || image.tag ? { PROXY_IMAGE_TAG: proxy.image.tag || image.tag } : {}),
    // Beside the heap there are buffers, code and the runtime itself.
    ...(values.resources.limits?.['memory'] === undefined ? {} : { NODE_OPTIONS: '--max-old-space-size-percentage=70' }),
  }
  const { extraEnv } = controller
  return [
    ofPod('POD_NAMESPACE', 'metadata.namespace'),
    ofPod('POD_NAME', 'metadata.name'),
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

/** As Helm writes it: keys in order, so that the same values never roll the pods. */
function toSortedJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  )
}
