import type { DeploySettings } from '../deploy/types.ts'

export const testSettings: DeploySettings = {
  image: { registry: 'registry.example.com', repository: 'proxy', tag: 'v1' },
  version: '1',
  xds: { host: 'op', port: 9978, isTls: false },
}

export const metadataOf = (name: string, namespace: string, generation: number) => ({
  name,
  namespace,
  uid: `uid-${name}`,
  generation,
  creationTimestamp: '',
})

export const testGatewayClass = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'GatewayClass',
  metadata: metadataOf('proxy', '', 1),
  spec: { controllerName: 'proxy.dev/proxy' },
}
