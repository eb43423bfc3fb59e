import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { GATEWAY_CLASS, SYSTEM_NAMESPACE } from '#api/names.ts'
import { loadManifests } from '../kube/manifests-testing.ts'
import { managedKeys } from './keys.ts'
import { resolveParameters } from './parameters.ts'
import { renderGateway } from './render.ts'
import type { DeploySettings, RenderResult } from './types.ts'
import { XDS_CERTIFICATE_SECRET } from './xds-ca.ts'

export const CASES = join(import.meta.dirname, 'testdata')

const settings: DeploySettings = {
  image: { registry: 'registry.example.com', repository: 'proxy', tag: 'v1.0.0' },
  version: '1.0.0',
  xds: { host: 'proxy.proxy-system.svc.cluster.local', port: 9978, isTls: false },
}

/** What testdata/<name>/in.yaml gives; a line `# settings: {...}` in it changes DeploySettings. */
export async function renderCase(name: string): Promise<RenderResult> {
  const path = join(CASES, name, 'in.yaml')
  const { snapshot, problems } = await loadManifests(path)
  if (problems.length > 0) throw new Error(problems.map(({ text }) => text).join('\n'))
  const [gateway] = snapshot.list('Gateway')
  if (!gateway) throw new Error(`${path} has no Gateway`)
  const gatewayClass = snapshot.get('GatewayClass', '', GATEWAY_CLASS) ?? { metadata: { name: GATEWAY_CLASS }, spec: {} }
  const resolved = resolveParameters(gateway, gatewayClass, (namespace, parameters) => snapshot.get('ProxyParameters', namespace, parameters))
  if (!resolved.ok) return resolved
  const keySecrets = Object.fromEntries(
    managedKeys.flatMap((key) => {
      const found = snapshot.get('Secret', gateway.metadata.namespace, key.secretName(gateway))
      return found ? [[key.name, found]] : []
    }),
  )
  const xdsSecret = snapshot.get('Secret', SYSTEM_NAMESPACE, XDS_CERTIFICATE_SECRET)
  const [, changes = '{}'] = /^# settings: (.*)$/m.exec(readFileSync(path, 'utf8')) ?? []
  return renderGateway({
    gateway,
    gatewayClass,
    listenerSets: snapshot.list('ListenerSet'),
    parameters: resolved.parameters,
    settings: { ...settings, ...(parse(changes) as Partial<DeploySettings>) },
    keySecrets,
    ...(xdsSecret ? { xdsSecret } : {}),
    generateKey: () => 'ab'.repeat(32),
  })
}
