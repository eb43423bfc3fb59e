import type { Values } from './values.ts'

/** A release, in Helm's terms. */
export interface Release {
  readonly name: string
  readonly namespace: string
  /** Value of the label app.kubernetes.io/managed-by. Default: `cdk8s`. */
  readonly managedBy?: string
  /** Version of the chart and the images, such as `0.2.0`. Default: that of `charts/proxy`. */
  readonly version?: string
}

type Labels = Readonly<Record<string, string>>

/** Names and labels of the objects. */
export interface Names {
  /** Name of namespaced objects. */
  readonly full: string
  /** Name of cluster-wide objects. */
  readonly cluster: string
  readonly namespace: string
  /** Version of the programs. */
  readonly version: string
  readonly serviceAccount: string
  readonly selector: Labels
  readonly labels: Labels
  metadata(name: string): { readonly name: string; readonly namespace: string; readonly labels: Labels }
}

/** Cuts a name to the maximum length of a label. */
const cut = (name: string): string => name.slice(0, 63).replace(/-$/, '')

/** Computes names and labels as `charts/proxy/templates/_names.tpl` does. */
export function nameObjects(
  chart: { readonly name: string; readonly version: string; readonly appVersion: string },
  { name: release, namespace, managedBy = 'cdk8s', version }: Release,
  { fullnameOverride, nameOverride, serviceAccount, commonLabels }: Values,
): Names {
  const appVersion = version ?? chart.appVersion
  const suffix = nameOverride || chart.name
  const full = cut(fullnameOverride || (release.includes(suffix) ? release : `${release}-${suffix}`))
  const selector = { proxy: 'proxy', 'app.kubernetes.io/name': cut(suffix), 'app.kubernetes.io/instance': release, 'app.kubernetes.io/component': 'controller' }
  const own = {
    'helm.sh/chart': `${chart.name}-${version ?? chart.version}`.replaceAll('+', '_'),
    'app.kubernetes.io/version': appVersion,
    'app.kubernetes.io/managed-by': managedBy,
  }
  const labels = { ...own, ...commonLabels, ...selector }
  return {
    full,
    cluster: `${full}-${namespace}`,
    namespace,
    version: appVersion,
    serviceAccount: serviceAccount.name || (serviceAccount.create ? full : 'default'),
    selector,
    labels,
    metadata: (name) => ({ name, namespace, labels }),
  }
}
