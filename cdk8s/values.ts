import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

type Text = Readonly<Record<string, string>>
/** A part of a Kubernetes object. */
export type Part = Readonly<Record<string, unknown>>

/** Values of the installation, documented in `charts/proxy/values.yaml`. */
export interface Values {
  readonly image: { readonly registry: string; readonly tag: string; readonly pullPolicy: string }
  readonly imagePullSecrets: readonly { readonly name: string }[]
  readonly proxy: { readonly image: ImageValues }
  readonly controller: ControllerValues
  readonly discoveryNamespaceSelectors: readonly Part[]
  readonly gatewayClassParametersRefs: Readonly<Record<string, { readonly name: string; readonly namespace: string }>>
  readonly inferenceExtension: { readonly enabled: boolean }
  readonly dashboards: { readonly enabled: boolean; readonly labels: Text; readonly annotations: Text }
  readonly monitoring: {
    readonly podMonitor: MonitorValues & { readonly gatewayClasses: readonly string[] }
    readonly serviceMonitor: MonitorValues
    readonly prometheusRule: { readonly enabled: boolean; readonly labels: Text }
  }
  readonly fullnameOverride: string
  readonly nameOverride: string
  readonly commonLabels: Text
  readonly deploymentAnnotations: Text
  readonly podAnnotations: Text
  readonly serviceAccount: { readonly create: boolean; readonly name: string; readonly annotations: Text }
  readonly affinity: Part
  readonly nodeSelector: Text
  readonly tolerations: readonly Part[]
  readonly topologySpreadConstraints: readonly Part[]
  readonly podSecurityContext: Part
  readonly securityContext: Part
  readonly resources: { readonly limits?: Readonly<Record<string, string | number>>; readonly requests?: Readonly<Record<string, string | number>> }
}

interface ImageValues {
  readonly registry: string
  readonly repository: string
  readonly tag: string
}

interface MonitorValues {
  readonly enabled: boolean
  readonly labels: Text
  /** Scrape interval; empty: that of Prometheus. */
  readonly interval: string
}

interface ControllerValues {
  readonly image: ImageValues & { readonly pullPolicy: string }
  readonly replicaCount: number
  readonly logLevel: string
  readonly backendRefGrantMode: 'none' | 'route' | 'route-and-policy'
  readonly extraEnv: Readonly<Record<string, string | number | boolean | Part>>
  readonly pluginRegistries: {
    readonly ca: { readonly configMapName: string; readonly secretName: string; readonly key: string }
    readonly credentialsSecretName: string
  }
  readonly strategy: Part
  readonly priorityClassName: string
  readonly podDisruptionBudget: Part
  readonly horizontalPodAutoscaler: Part
  readonly verticalPodAutoscaler: Part
  readonly networkPolicy: { readonly enabled: boolean; readonly xdsFrom: readonly Part[]; readonly metricsFrom: readonly Part[] }
  readonly xds: { readonly tls: { readonly enabled: boolean } }
  readonly service: ServiceValues
}

/** The Service of the operator; other fields are those of a ServiceSpec. */
export interface ServiceValues extends Readonly<Record<string, unknown>> {
  readonly enabled: boolean
  readonly type: string
  readonly ports: { readonly gwGrpc: number; readonly health: number; readonly metrics: number }
  readonly annotations: Text
  readonly extraLabels: Text
}

/** Values that override the defaults of the chart. As in Helm, maps are merged and lists are replaced. */
export type ValueOverrides = Overrides<Values>
type Overrides<T> = T extends readonly unknown[] ? T : T extends object ? { readonly [K in keyof T]?: Overrides<T[K]> } : T

const CHART = join(import.meta.dirname, '../charts/proxy')

/** Merges the values with the defaults of the chart. */
export function readValues(overrides: ValueOverrides): Values {
  return merge(readYaml('values.yaml'), overrides) as Values
}

/** Name and versions of the chart. */
export function readChart(): { readonly name: string; readonly version: string; readonly appVersion: string } {
  return readYaml('Chart.yaml') as ReturnType<typeof readChart>
}

/** Alerting rules of the chart, as in a rule file of Prometheus. */
export function readAlerts(): Part {
  return readYaml('alerts/proxy.yaml') as Part
}

/** Grafana dashboards of the chart: file name -> content. */
export function readDashboards(): Text {
  const folder = join(CHART, 'dashboards')
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'))
  return Object.fromEntries(files.map((file) => [file, readFileSync(join(folder, file), 'utf8')]))
}

const readYaml = (file: string): unknown => parse(readFileSync(join(CHART, file), 'utf8'))
const isMap = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

function merge(base: unknown, over: unknown): unknown {
  if (!isMap(base) || !isMap(over)) return over === undefined ? base : over
  const keys = new Set([...Object.keys(base), ...Object.keys(over)])
  return Object.fromEntries([...keys].map((key) => [key, merge(base[key], over[key])]))
}
