import { App } from 'cdk8s'
import { stringify } from 'yaml'
import { Installation } from '../../cdk8s/installation.ts'
import { readChartFiles } from './charts.ts'
import type { Target } from './target.ts'

/** Namespace of the operator. */
export const NAMESPACE = 'proxy-system'

/** `install.yaml`: the namespace, the CRDs, and the operator as the chart installs it by default. Needs `kubectl apply --server-side`, because of the size of the CRDs. */
export async function renderInstallation(target: Target): Promise<string> {
  const { version, tag, registry } = target
  const release = { name: 'proxy', namespace: NAMESPACE, managedBy: 'kubectl', version }
  const objects = new Installation(new App(), 'installation', { release, values: { image: { registry } } }).toJson() as readonly unknown[]
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }
  const documents = [stringify(namespace).trimEnd(), ...(await readCrds(target)), renderObjects(objects)]
  const header = `# Proxy Service ${tag}: CRDs and operator.  kubectl apply --server-side -f install.yaml\n# Needs the CRDs of Gateway API.\n`
  return `${header}${documents.join('\n---\n')}`
}

/** The CRDs as YAML. */
export async function readCrds(target: Target): Promise<readonly string[]> {
  const files = await readChartFiles('proxy-crds', target)
  return files.filter(({ path }) => path.includes('/templates/')).map(({ content }) => content.toString().trimEnd())
}

/** Objects as YAML documents; ends with a line break. */
export function renderObjects(objects: readonly unknown[]): string {
  return objects.map((object) => stringify(object, { lineWidth: 0, aliasDuplicateObjects: false, version: '1.1' })).join('---\n')
}
