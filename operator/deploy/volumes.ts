import type { Volume, VolumeMount } from 'cdk8s-plus-29/lib/imports/k8s.js'
import { XDS_AUDIENCE } from '#api/names.ts'
import { XDS_CA_DIRECTORY } from './env.ts'
import { CA_ENTRY } from './xds-ca.ts'

const TOKEN_SECONDS = 43_200

/** A volume, and where the data plane sees it. */
interface Mounted {
  readonly volume: Volume
  readonly mountPath: string
  readonly readOnly?: true
}

const token = (name: string, audience: string, mountPath: string): Mounted => ({
  volume: { name, projected: { sources: [{ serviceAccountToken: { audience, expirationSeconds: TOKEN_SECONDS, path: name } }] } },
  mountPath,
  readOnly: true,
})

/** Volumes of the pod (operator.md §2.4, §2.7). */
export function listVolumes(
  configMap: string,
  xdsCa: string | undefined,
  isMesh: boolean,
): { readonly volumes: Volume[]; readonly volumeMounts: VolumeMount[] } {
  const mounted: Mounted[] = [
    { volume: { name: 'config-volume', configMap: { name: configMap } }, mountPath: '/config' },
    token('xds-token', XDS_AUDIENCE, '/var/run/secrets/xds-tokens'),
    { volume: { name: 'tmp', emptyDir: {} }, mountPath: '/tmp' },
  ]
  if (xdsCa !== undefined) {
    const volume: Volume = { name: 'xds-ca', configMap: { name: xdsCa, items: [{ key: CA_ENTRY, path: CA_ENTRY }] } }
    mounted.push({ volume, mountPath: XDS_CA_DIRECTORY, readOnly: true })
  }
  if (isMesh) {
    mounted.push({ volume: { name: 'istiod-ca-cert', configMap: { name: 'istio-ca-root-cert' } }, mountPath: '/var/run/secrets/istio', readOnly: true })
    mounted.push(token('istio-token', 'istio-ca', '/var/run/secrets/tokens'))
  }
  return {
    volumes: mounted.map(({ volume }) => volume),
    volumeMounts: mounted.map(({ volume, mountPath, readOnly }) => ({ name: volume.name, mountPath, ...(readOnly ? { readOnly } : {}) })),
  }
}
