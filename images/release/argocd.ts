import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'

const SCRIPTS = join(import.meta.dirname, '../../charts/argocd')

/** Patch of ConfigMap `argocd-cm` that adds health checks of our kinds and of Gateways, from `charts/argocd/<group>_<kind>.lua`. */
export async function renderHealthChecks(): Promise<string> {
  const files = (await readdir(SCRIPTS)).filter((file) => file.endsWith('.lua')).toSorted()
  const entries = files.map(async (file) => [`resource.customizations.health.${file.replace(/\.lua$/, '')}`, await readFile(join(SCRIPTS, file), 'utf8')])
  const header = '# Health checks for Argo CD.  kubectl -n argocd patch configmap argocd-cm --patch-file argocd-health.yaml\n'
  return `${header}${stringify({ data: Object.fromEntries(await Promise.all(entries)) as object }, { lineWidth: 0 })}`
}
