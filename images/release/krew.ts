import { createHash } from 'node:crypto'
import { stringify } from 'yaml'
import type { Target } from './target.ts'

/**
 * Manifest of `kubectl proxyctl` for krew, with a platform for each archive of an executable. Undefined if there is none.
 *
 * @param archives name and content, such as `proxyctl-0.2.0-linux-amd64.tar.gz`
 * @see https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/
 */
export function createPluginManifest(
  { version, tag, repository }: Target,
  archives: readonly { readonly name: string; readonly content: Buffer }[],
): string | undefined {
  const platforms = archives.flatMap(({ name, content }) => {
    const [, os, arch] = new RegExp(`^proxyctl-${version.replaceAll('.', '\\.')}-(linux|darwin)-(amd64|arm64)\\.tar\\.gz$`).exec(name) ?? []
    if (os === undefined) return []
    return [
      {
        selector: { matchLabels: { os, arch } },
        uri: `https://github.com/${repository}/releases/download/${tag}/${name}`,
        sha256: createHash('sha256').update(content).digest('hex'),
        bin: 'proxyctl',
        files: [
          { from: 'proxyctl', to: '.' },
          { from: 'LICENSE*', to: '.' },
        ],
      },
    ]
  })
  if (platforms.length === 0) return undefined
  return stringify(
    {
      apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
      kind: 'Plugin',
      metadata: { name: 'proxyctl' },
      spec: {
        version: tag,
        homepage: `https://github.com/${repository}`,
        shortDescription: 'Explain, trace and lint Proxy Service gateways',
        description:
          'Shows the status of Gateways, routes and policies, explains which policies apply to a route and why,\ntraces a request through the gateway, and checks manifests without a cluster.\n',
        platforms,
      },
    },
    { lineWidth: 0 },
  )
}
