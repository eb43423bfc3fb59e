import type { Names } from './names.ts'
import { readAlerts, type Part, type Values } from './values.ts'

/** An object of the Prometheus operator. */
interface Monitor {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace: string; readonly labels: Readonly<Record<string, string>> }
  readonly spec: Part
}

/** PodMonitor of the data planes, ServiceMonitor of the operator, and alerting rules. Throws if the ServiceMonitor is enabled without a Service. */
export function describeMonitoring(names: Names, { monitoring, controller }: Values): Monitor[] {
  const { podMonitor, serviceMonitor, prometheusRule } = monitoring
  if (serviceMonitor.enabled && !controller.service.enabled)
    throw new Error('monitoring.serviceMonitor.enabled needs controller.service.enabled: a ServiceMonitor finds pods by their Service')
  const describe = (kind: string, name: string, labels: Monitor['metadata']['labels'], spec: Part): Monitor => {
    const metadata = names.metadata(name)
    return { apiVersion: 'monitoring.coreos.com/v1', kind, metadata: { ...metadata, labels: { ...labels, ...metadata.labels } }, spec }
  }
  const scrape = ({ interval }: { readonly interval: string }): Part[] => [{ port: 'metrics', ...(interval === '' ? {} : { interval }) }]
  const dataPlanes = { matchExpressions: [{ key: 'gateway.networking.k8s.io/gateway-class-name', operator: 'In', values: podMonitor.gatewayClasses }] }
  return [
    ...(podMonitor.enabled
      ? [
          describe('PodMonitor', `${names.full.slice(0, 52).replace(/-$/, '')}-data-planes`, podMonitor.labels, {
            namespaceSelector: { any: true },
            selector: dataPlanes,
            podMetricsEndpoints: scrape(podMonitor),
          }),
        ]
      : []),
    ...(serviceMonitor.enabled
      ? [describe('ServiceMonitor', names.full, serviceMonitor.labels, { selector: { matchLabels: names.selector }, endpoints: scrape(serviceMonitor) })]
      : []),
    ...(prometheusRule.enabled ? [describe('PrometheusRule', names.full, prometheusRule.labels, readAlerts())] : []),
  ]
}
