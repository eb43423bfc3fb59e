import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import packageJson from '../../package.json' with { type: 'json' }
import { bundleProxyctl } from '../bundle.ts'
import { bundleGateway, LAUNCHER } from '../gateway.ts'
import type { ArchiveFile } from './archive.ts'
import type { ExecutableName } from './executable.ts'
import type { Target } from './target.ts'

const ROOT = join(import.meta.dirname, '../..')

interface Description {
  readonly text: string
  /** File that is started. */
  readonly bin: string
  readonly usage: string
  /** Page of the guide. */
  readonly page: string
  /** Writes the files of the program to a directory. */
  readonly write: (directory: string, version: string) => Promise<void>
}

const descriptions: Readonly<Record<ExecutableName, Description>> = {
  proxyctl: {
    text: 'Command-line tool of Proxy Service: status, explain, trace, lint and config of its gateways',
    bin: 'proxyctl.cjs',
    usage: 'proxyctl --help',
    page: 'proxyctl.md',
    write: (directory, version) => bundleProxyctl(join(directory, 'proxyctl.cjs'), { version }),
  },
  'proxy-service': {
    text: `${packageJson.description}, with one config file on one machine`,
    bin: LAUNCHER,
    usage: 'proxy-service run gateway.yaml',
    page: 'run.md',
    write: (directory, version) => bundleGateway(directory, { version }),
  },
}

/** Files of the npm package of a program: bundled, without dependencies. */
export async function createPackageFiles({ version, repository, npmScope }: Target, program: ExecutableName): Promise<readonly ArchiveFile[]> {
  const url = `https://github.com/${repository}`
  const name = `${npmScope}/${program}`
  const { text, bin, usage, page, write } = descriptions[program]
  const manifest = {
    name,
    version,
    description: text,
    type: 'module',
    license: packageJson.license,
    homepage: `${url}#readme`,
    bugs: `${url}/issues`,
    repository: { type: 'git', url: `git+${url}.git` },
    bin: { [program]: bin },
    engines: packageJson.engines,
    publishConfig: { access: 'public' },
  }
  const readme = `# ${program}\n\n${text}.\n\n    npm install --global ${name}\n    ${usage}\n\nGuide: ${url}/blob/v${version}/docs/guide/${page}\n`
  return [
    { path: 'package/package.json', content: `${JSON.stringify(manifest, undefined, 2)}\n` },
    { path: 'package/LICENSE', content: await readFile(join(ROOT, 'LICENSE')) },
    { path: 'package/README.md', content: readme },
    ...(await bundle(bin, (directory) => write(directory, version))),
  ]
}

async function bundle(bin: string, write: (directory: string) => Promise<void>): Promise<readonly ArchiveFile[]> {
  const directory = await mkdtemp(join(tmpdir(), 'package-'))
  try {
    await write(directory)
    const entries = await readdir(directory, { recursive: true, withFileTypes: true })
    const paths = entries.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name).slice(directory.length + 1))
    // The manifest of the package takes the place of that of the bundle: both say that files are ECMAScript modules.
    const own = paths.filter((path) => path !== 'package.json').toSorted()
    return await Promise.all(own.map(async (path) => ({ path: `package/${path}`, content: await readFile(join(directory, path)), isExecutable: path === bin })))
  } finally {
    await rm(directory, { recursive: true })
  }
}
