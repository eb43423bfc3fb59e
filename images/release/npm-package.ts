import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import packageJson from '../../package.json' with { type: 'json' }
import { bundleProxyctl } from '../bundle.ts'
import type { ArchiveFile } from './archive.ts'
import type { Target } from './target.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Files of the npm package of proxyctl: one bundled program without dependencies. */
export async function createPackageFiles({ version, repository, npmPackage }: Target): Promise<readonly ArchiveFile[]> {
  const url = `https://github.com/${repository}`
  const manifest = {
    name: npmPackage,
    version,
    description: 'Command-line tool of Proxy Service: status, explain, trace, lint and config of its gateways',
    license: packageJson.license,
    homepage: `${url}#readme`,
    bugs: `${url}/issues`,
    repository: { type: 'git', url: `git+${url}.git` },
    bin: { proxyctl: 'proxyctl.cjs' },
    engines: packageJson.engines,
    publishConfig: { access: 'public' },
  }
  const readme = `# proxyctl\n\nCommand-line tool of [Proxy Service](${url}), a Kubernetes-native gateway.\n\n    npm install --global ${npmPackage}\n    proxyctl --help\n\nGuide: ${url}/blob/v${version}/docs/guide/proxyctl.md\n`
  return [
    { path: 'package/package.json', content: `${JSON.stringify(manifest, undefined, 2)}\n` },
    { path: 'package/LICENSE', content: await readFile(join(ROOT, 'LICENSE')) },
    { path: 'package/README.md', content: readme },
    { path: 'package/proxyctl.cjs', content: await bundle(version), isExecutable: true },
  ]
}

async function bundle(version: string): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), 'proxyctl-'))
  try {
    const file = join(directory, 'proxyctl.cjs')
    await bundleProxyctl(file, { version })
    return await readFile(file)
  } finally {
    await rm(directory, { recursive: true })
  }
}
