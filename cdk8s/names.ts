import type { Values } from './values.ts'

/** What Helm calls a release. */
export interface Release {
  readonly name: string
  readonly namespace: string
  /** Label app.kubernetes.io/managed-by. Default `cdk8s`. */
  readonly managedBy?: string
}

type Labels = Readonly<Record<string, string>>

/** Names and labels that all objects agree on. */
export interface Names {
  readonly full: string
  /** Of cluster-wide objects. */
  readonly cluster: string
  readonly namespace: string
  readonly serviceAccount: string
  readonly selector: Labels
  readonly labels: Labels
  readonly podLabels: Labels
  /** Tag of images that name none. */
  readonly tag: string
  metadata(name: string): { readonly name: string; readonly namespace: string; readonly labels: Labels }
}

export function nameObjects(
  chart: { readonly name: string; readonly version: string; readonly appVersion: string },
  { name: release, namespace, managedBy = 'cdk8s' }: Release,
  { fullnameOverride, nameOverride, serviceAccount, commonLabels, image }: Values,
): Names {
  const suffix = nameOverride || (release.includes(chart.name) ? '' : chart.name)
  const full = (fullnameOverride || (suffix === '' ? release : `${release}-${suffix}`)).slice(0, 63).replace(/-$/, '')
  const selector = { 'app.kubernetes.io/name': chart.name, 'app.kubernetes.io/instance': release, 'app.kubernetes.io/component': 'controller' }
  const own = {
    'helm.sh/chart': `${chart.name}-${chart.version}`.replaceAll('+', '_'),
    'app.kubernetes.io/version': chart.appVersion,
    'app.kubernetes.io/managed-by': managedBy,
  }
  const labels = { ...own, ...commonLabels, ...selector }
  return {
    full,
    cluster: `${full}-${namespace}`,
    namespace,
    serviceAccount: serviceAccount.name || (serviceAccount.create ? full : 'default'),
    selector,
    labels,
    podLabels: { ...commonLabels, ...selector },
    tag: image.tag || `v${chart.appVersion}`,
    metadata: (name) => ({ name, namespace, labels }),
  }
}
