import { execFile } from 'node:child_process'
import { chmod, copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import packageJson from '../../package.json' with { type: 'json' }
import { bundleProxyctl } from '../bundle.ts'
import { bundleGateway, readNodeRun } from '../gateway.ts'
import { unpackNode, type Platform } from './executable.ts'
import type { Target } from './target.ts'

const run = promisify(execFile)
const SOURCES = join(import.meta.dirname, 'debian')
const LIBRARY = '/usr/lib/proxy-service'
const scripts = ['postinst', 'prerm', 'postrm']
/** dpkg sets later times of files to this one, so that the same files make the same package. */
const SOURCE_DATE_EPOCH = '315532800'

/**
 * Builds the Debian package with the gateway, proxyctl, their Node and the unit of systemd, by dpkg-deb. Needs glibc and libstdc++ only.
 *
 * @returns file name and content
 */
export async function packDebian(
  architecture: Platform['architecture'],
  { version, repository }: Pick<Target, 'version' | 'repository'>,
): Promise<{ readonly name: string; readonly content: Buffer }> {
  const directory = await mkdtemp(join(tmpdir(), 'debian-'))
  try {
    const root = join(directory, 'root')
    await writeTree(root, architecture, version)
    // A version of Debian with a tilde is before the one without it.
    const debianVersion = version.replace('-', '~')
    await write(root, 'DEBIAN/control', describePackage(debianVersion, architecture, repository))
    await write(root, 'DEBIAN/conffiles', '/etc/proxy-service/gateway.yaml\n')
    for (const script of scripts) await copy(join(SOURCES, script), join(root, 'DEBIAN', script), 0o755)
    const name = `proxy-service_${debianVersion}_${architecture}.deb`
    const file = join(directory, name)
    // Debian 12, Ubuntu 22.04 and later read zstd, which takes a tenth of the time of xz.
    const env = { ...process.env, SOURCE_DATE_EPOCH }
    await run('dpkg-deb', ['--root-owner-group', '-Zzstd', '-z9', '--build', root, file], { env }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error
      throw new Error('dpkg-deb is missing, which builds the Debian package; install dpkg, or use EXECUTABLES=no', { cause: error })
    })
    return { name, content: await readFile(file) }
  } finally {
    await rm(directory, { recursive: true })
  }
}

async function writeTree(root: string, architecture: Platform['architecture'], version: string): Promise<void> {
  const library = join(root, LIBRARY)
  const { program, license } = await unpackNode(architecture, join(root, '../node'))
  await bundleGateway(library, { version })
  await bundleProxyctl(join(library, 'proxyctl.cjs'), { version })
  await copy(program, join(library, 'node'), 0o755)
  const { options, variables } = await readNodeRun()
  // As in the container image. Variables that are set stay as they are.
  const defaults = variables.map((variable) => `: "\${${variable.replace('=', ':=')}}"`)
  const names = variables.map((variable) => variable.split('=', 1)[0])
  const gateway = [...defaults, `export ${names.join(' ')}`, `exec ${LIBRARY}/node ${options.join(' ')} ${LIBRARY}/main.js "$@"`]
  await write(root, 'usr/bin/proxy-service', `#!/bin/sh\n${gateway.join('\n')}\n`, 0o755)
  await write(root, 'usr/bin/proxyctl', `#!/bin/sh\nexec ${LIBRARY}/node ${LIBRARY}/proxyctl.cjs "$@"\n`, 0o755)
  await copy(join(SOURCES, 'proxy-service.service'), join(root, 'usr/lib/systemd/system/proxy-service.service'))
  await copy(join(SOURCES, 'gateway.yaml'), join(root, 'etc/proxy-service/gateway.yaml'))
  await copy(join(SOURCES, '../../../LICENSE'), join(root, 'usr/share/doc/proxy-service/copyright'))
  await copy(license, join(root, 'usr/share/doc/proxy-service/copyright.node'))
}

/** Lines of the description begin with a space, as in each control file. */
const describePackage = (version: string, architecture: string, repository: string): string => `Package: proxy-service
Version: ${version}
Architecture: ${architecture}
Maintainer: Proxy Service <noreply@${repository.split('/')[0]?.toLowerCase() ?? ''}.invalid>
Depends: libc6 (>= 2.31), libgcc-s1, libstdc++6
Recommends: ca-certificates
Section: net
Priority: optional
Homepage: https://github.com/${repository}
Description: ${packageJson.description}
 The gateway with its console, proxyctl, and Node.js for both. The service
 proxy-service runs /etc/proxy-service/gateway.yaml; it is not started by the
 installation.
`

async function write(root: string, path: string, content: string, mode = 0o644): Promise<void> {
  const file = join(root, path)
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, content)
  await chmod(file, mode)
}

async function copy(from: string, to: string, mode = 0o644): Promise<void> {
  await mkdir(dirname(to), { recursive: true })
  await copyFile(from, to)
  await chmod(to, mode)
}
