import { App } from 'cdk8s'
import { stringify } from 'yaml'
import { Installation } from '../../cdk8s/installation.ts'
import type { ValueOverrides } from '../../cdk8s/values.ts'
import type { ArchiveFile } from './archive.ts'
import { readCrds, renderObjects, NAMESPACE } from './manifest.ts'
import type { Target } from './target.ts'

/** A Kubernetes object. */
interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
}

interface Deployment extends KubernetesObject {
  readonly spec: { readonly replicas: number; readonly template: { readonly spec: { readonly topologySpreadConstraints: readonly object[] } } }
}

const KUSTOMIZATION = 'kustomization.yaml'

/** Files of the kustomize base `proxy-kustomize/base`, which is the installation of `install.yaml`, and of its components, each of which adds values of the chart. */
export async function createKustomizeFiles(target: Target): Promise<readonly ArchiveFile[]> {
  const base = listObjects(target, {})
  const baseKeys = new Set(base.map(keyOf))
  const onlyIn = (values: ValueOverrides): readonly KubernetesObject[] => listObjects(target, values).filter((object) => !baseKeys.has(keyOf(object)))
  const replicated: ValueOverrides = { controller: { replicaCount: 2 } }
  const enabled = { enabled: true }
  const file = (path: string, content: unknown): ArchiveFile => ({
    path: `proxy-kustomize/${path}`,
    content: typeof content === 'string' ? content : toYaml(content),
  })
  const component = (name: string, objects: readonly KubernetesObject[], fields: object = {}): ArchiveFile[] => [
    file(`components/${name}/${KUSTOMIZATION}`, { apiVersion: 'kustomize.config.k8s.io/v1alpha1', kind: 'Component', resources: ['objects.yaml'], ...fields }),
    file(`components/${name}/objects.yaml`, renderObjects(objects)),
  ]
  return [
    file(`base/${KUSTOMIZATION}`, {
      apiVersion: 'kustomize.config.k8s.io/v1beta1',
      kind: 'Kustomization',
      resources: ['namespace.yaml', 'crds.yaml', 'operator.yaml'],
    }),
    file('base/namespace.yaml', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }),
    file('base/crds.yaml', `${(await readCrds(target)).join('\n---\n')}\n`),
    file('base/operator.yaml', renderObjects(base)),
    ...component('high-availability', onlyIn(replicated), { patches: [{ patch: toYaml(describeReplicas(target, replicated)) }] }),
    ...component('monitoring', onlyIn({ monitoring: { podMonitor: enabled, serviceMonitor: enabled, prometheusRule: enabled } })),
    ...component('dashboards', onlyIn({ dashboards: enabled })),
  ]
}

const toYaml = (value: unknown): string => stringify(value, { lineWidth: 0, aliasDuplicateObjects: false, version: '1.1' })
const keyOf = ({ kind, metadata }: KubernetesObject): string => `${kind}/${metadata.name}`

function listObjects({ version, registry }: Target, values: ValueOverrides): readonly KubernetesObject[] {
  const release = { name: 'proxy', namespace: NAMESPACE, managedBy: 'kustomize', version }
  return new Installation(new App(), 'installation', { release, values: { ...values, image: { registry } } }).toJson() as readonly KubernetesObject[]
}

/** Patch of the Deployment: replicas and how they are spread. */
function describeReplicas(target: Target, values: ValueOverrides): object {
  const deployment = listObjects(target, values).find(({ kind }) => kind === 'Deployment') as Deployment | undefined
  if (deployment === undefined) throw new Error('the installation has no Deployment')
  const { apiVersion, kind, spec } = deployment
  const { topologySpreadConstraints } = spec.template.spec
  const metadata = { name: 'proxy', namespace: NAMESPACE }
  return { apiVersion, kind, metadata, spec: { replicas: spec.replicas, template: { spec: { topologySpreadConstraints } } } }
}
