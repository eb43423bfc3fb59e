import { IntOrString, type Container, type ContainerPort, type SecurityContext } from 'cdk8s-plus-29/lib/imports/k8s.js'
import { LIVENESS_PORT, READINESS_PORT, STATS_PORT } from '#api/names.ts'

// What containers of the data plane have in common; the bridge of an MCP server is one.

const USER_ID = 10_101
const readyPath = { httpGet: { path: '/healthz/ready', port: IntOrString.fromNumber(READINESS_PORT) } }

export const unprivileged: SecurityContext = { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } }
/** For the image of the data plane. */
export const restricted: SecurityContext = { ...unprivileged, readOnlyRootFilesystem: true, runAsNonRoot: true, runAsUser: USER_ID }

export const metricsPort: ContainerPort = { name: 'metrics', containerPort: STATS_PORT, protocol: 'TCP' }
/** Annotations of the pod by which Prometheus finds the metrics. */
export const scrapeAnnotations = { 'prometheus.io/path': '/metrics', 'prometheus.io/port': String(STATS_PORT), 'prometheus.io/scrape': 'true' } as const

export const probes: Pick<Container, 'readinessProbe' | 'startupProbe' | 'livenessProbe'> = {
  readinessProbe: { ...readyPath, periodSeconds: 10 },
  startupProbe: { ...readyPath, periodSeconds: 1, failureThreshold: 60, successThreshold: 1, timeoutSeconds: 2 },
  livenessProbe: {
    httpGet: { path: '/healthz/live', port: IntOrString.fromNumber(LIVENESS_PORT) },
    periodSeconds: 5,
    failureThreshold: 2,
    timeoutSeconds: 2,
  },
}
