import { createHash } from 'node:crypto'
import { mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import packageJson from '../../package.json' with { type: 'json' }
import { buildImages } from '../build.ts'
import { findEngine } from '../engine.ts'
import { packFiles } from './archive.ts'
import { renderHealthChecks } from './argocd.ts'
import { chartNames, readChartFiles } from './charts.ts'
import { packDebian } from './debian.ts'
import { listPlatforms, packExecutable, type ExecutableName } from './executable.ts'
import { createPluginManifest } from './krew.ts'
import { createKustomizeFiles } from './kustomize.ts'
import { renderInstallation } from './manifest.ts'
import { writeNotes } from './notes.ts'
import { createPackageFiles } from './npm-package.ts'
import { createSbom, type Lockfile } from './sbom.ts'
import { describeTarget, type Target } from './target.ts'

const ROOT = join(import.meta.dirname, '../..')
const USAGE = `usage: node images/release/main.ts --version TAG [--repository OWNER/NAME] [--registry HOST/PATH] [--base IMAGE] [--no-images]
                                    [--no-executables] [--only-executables] [--executables DIR] [--out DIR]

  --version TAG            such as v0.2.0
  --repository OWNER/NAME  on GitHub (default: that of package.json)
  --registry HOST/PATH     of images and charts (default ghcr.io/OWNER/NAME)
  --base IMAGE             image with Node.js 24 or newer; default: built from the Node.js of this machine
  --no-images              everything but the images, which need docker or buildah
  --no-executables         builds neither executables nor Debian packages, which needs Linux with dpkg-deb, or macOS, and npm
  --only-executables       writes the executables of this machine's platforms and nothing else
  --executables DIR        adds the archives of executables that another machine built
  --out DIR                is emptied first (default dist/release)
`

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      version: { type: 'string', default: '' },
      repository: { type: 'string', default: /github\.com\/(.*)\.git$/.exec(packageJson.repository.url)?.[1] ?? '' },
      registry: { type: 'string' },
      base: { type: 'string' },
      'no-images': { type: 'boolean', default: false },
      'no-executables': { type: 'boolean', default: false },
      'only-executables': { type: 'boolean', default: false },
      executables: { type: 'string' },
      out: { type: 'string', default: join(ROOT, 'dist/release') },
      help: { type: 'boolean', short: 'h' },
    },
  })
  if (values.help === true) return void process.stdout.write(USAGE)
  const { version: tag, repository, registry, base, out } = values
  const target = describeTarget({ tag, repository, registry })
  await rm(out, { recursive: true, force: true })
  await mkdir(out, { recursive: true })
  const executables = values['no-executables'] ? [] : await buildExecutables(target)
  for (const { name, content } of executables) await writeFile(join(out, name), content)
  if (values['only-executables']) return
  const given = values.executables === undefined ? [] : await readExecutables(values.executables)
  for await (const { name, content } of createFiles(target, [...executables, ...given])) await writeFile(join(out, name), content)
  if (!values['no-images']) await saveImages(target, base, out)
  const names = (await readdir(out)).toSorted()
  await writeFile(join(out, 'SHA256SUMS'), (await Promise.all(names.map(async (name) => `${await hashFile(join(out, name))}  ${name}\n`))).join(''))
  process.stdout.write([...names, 'SHA256SUMS'].map((name) => `${join(out, name)}\n`).join(''))
}

interface Executable {
  /** Name of the archive. */
  readonly name: string
  readonly content: Buffer
}

/** On macOS only proxyctl: the gateway runs there through Node. */
async function buildExecutables(target: Target): Promise<readonly Executable[]> {
  const archives: Executable[] = []
  const add = async (archive: Promise<Executable>): Promise<void> => {
    archives.push(await archive)
    process.stderr.write(`built ${archives.at(-1)?.name ?? ''}\n`)
  }
  for (const platform of listPlatforms()) {
    const programs: readonly ExecutableName[] = platform.os === 'linux' ? ['proxyctl', 'proxy-service'] : ['proxyctl']
    for (const program of programs) await add(packExecutable(platform, target.version, program))
    if (platform.os === 'linux') await add(packDebian(platform.architecture, target))
  }
  return archives
}

async function readExecutables(directory: string): Promise<readonly Executable[]> {
  const names = (await readdir(directory)).filter((name) => /\.(tar\.gz|deb)$/.test(name)).toSorted()
  return Promise.all(names.map(async (name) => ({ name, content: await readFile(join(directory, name)) })))
}

/** All files but images and checksums. */
async function* createFiles(target: Target, executables: readonly Executable[]): AsyncGenerator<{ readonly name: string; readonly content: Buffer | string }> {
  const { version } = target
  yield* executables
  const plugin = createPluginManifest(target, executables)
  if (plugin !== undefined) yield { name: 'krew-proxyctl.yaml', content: plugin }
  for (const chart of chartNames) yield { name: `${chart}-${version}.tgz`, content: packFiles(await readChartFiles(chart, target)) }
  for (const program of ['proxyctl', 'proxy-service'] as const)
    yield { name: `${program}-${version}.tgz`, content: packFiles(await createPackageFiles(target, program), 6) }
  yield { name: 'proxy-service.service', content: await readFile(join(ROOT, 'images/release/debian/proxy-service.service')) }
  yield { name: 'install.yaml', content: await renderInstallation(target) }
  yield { name: `proxy-kustomize-${version}.tgz`, content: packFiles(await createKustomizeFiles(target)) }
  yield { name: 'argocd-health.yaml', content: await renderHealthChecks() }
  yield { name: 'gateway-api-conformance.yaml', content: await readFile(join(ROOT, 'e2e/conformance/report.yaml')) }
  yield { name: 'inference-extension-conformance.yaml', content: await readFile(join(ROOT, 'e2e/conformance/inference/report.yaml')) }
  yield { name: 'config.schema.json', content: await readFile(join(ROOT, 'gen/config/file.schema.json')) }
  yield { name: 'v1alpha1.schema.json', content: await readFile(join(ROOT, 'gen/v1alpha1/schema.json')) }
  const lockfile = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as Lockfile
  yield { name: 'sbom.cdx.json', content: `${JSON.stringify(createSbom(lockfile, target), undefined, 2)}\n` }
  yield { name: 'release-notes.md', content: writeNotes(await readFile(join(ROOT, 'CHANGELOG.md'), 'utf8'), target) }
}

/** Writes an OCI archive of each image, for the architecture of this machine. */
async function saveImages({ version, tag, registry }: Target, base: string | undefined, out: string): Promise<void> {
  const engine = findEngine()
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch
  const save = async (image: string, repository: string): Promise<string> => {
    const archive = join(out, `${repository}-${tag}-${architecture}.oci.tar`)
    engine.saveOci(image, archive)
    return archive
  }
  for await (const { image } of buildImages({ engine, registry, tag, base, version, out: join(ROOT, 'dist/images'), save }))
    process.stderr.write(`built ${image}\n`)
}

const hashFile = async (path: string): Promise<string> =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex')

try {
  await main()
} catch (error) {
  process.stderr.write(`release: ${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}
