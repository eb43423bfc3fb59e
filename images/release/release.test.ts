import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { parse, parseAllDocuments } from 'yaml'
import { bundleProgram, checkNode } from '../bundle.ts'
import { readNodeRun } from '../gateway.ts'
import { packFiles } from './archive.ts'
import { renderHealthChecks } from './argocd.ts'
import { readChartFiles } from './charts.ts'
import { addNote } from './elf.ts'
import type { ExecutableName } from './executable.ts'
import { createPluginManifest } from './krew.ts'
import { renderInstallation } from './manifest.ts'
import { writeNotes } from './notes.ts'
import { createPackageFiles } from './npm-package.ts'
import { createSbom, type Lockfile } from './sbom.ts'
import { describeTarget } from './target.ts'

const ROOT = join(import.meta.dirname, '../..')
const run = promisify(execFile)
/** No environment except the directory with shared libraries of Node that .ci/exec installs for a user without root. */
const env = { LD_LIBRARY_PATH: process.env['LD_LIBRARY_PATH'] }
const target = describeTarget({ tag: 'v0.2.0', repository: 'Example/proxy-service' })
let directory: string
beforeAll(async () => void (directory = await mkdtemp(join(tmpdir(), 'release-'))))
afterAll(() => rm(directory, { recursive: true }))

describe('packFiles', () => {
  test('writes an archive that tar extracts, with contents and modes', async () => {
    const file = join(directory, 'a.tgz')
    const files = [
      { path: 'a/empty', content: '' },
      { path: 'a/block', content: Buffer.alloc(512, 'x') },
      { path: 'a/b/run', content: '#!/bin/sh\necho é\n', isExecutable: true },
    ]
    await writeFile(file, packFiles(files))
    await run('tar', ['-xzf', file, '-C', directory])
    for (const { path, content, isExecutable = false } of files) {
      expect(await readFile(join(directory, path), 'utf8')).toBe(content.toString())
      expect((await stat(join(directory, path))).mode & 0o100).toBe(isExecutable ? 0o100 : 0)
    }
    const { stdout } = await run('tar', ['-tzf', file])
    expect(stdout.split('\n')).toEqual(['a/empty', 'a/block', 'a/b/run', ''])
  })

  test.each([
    ['longer than 100 bytes', 'a'.repeat(101)],
    ['absolute', '/etc/passwd'],
    ['outside of the archive', 'a/../../b'],
  ])('rejects a path that is %s', (_, path) => {
    expect(() => packFiles([{ path, content: '' }])).toThrow(path)
  })
})

describe('describeTarget', () => {
  test('derives registry and npm scope from the repository, in lower case', () => {
    expect(target).toEqual({
      version: '0.2.0',
      tag: 'v0.2.0',
      repository: 'Example/proxy-service',
      registry: 'ghcr.io/example/proxy-service',
      npmScope: '@example',
    })
  })

  test('accepts a prerelease and another registry', () => {
    const other = describeTarget({ tag: 'v1.0.0-rc.1', repository: 'a/b', registry: 'registry.example/team' })
    expect(other).toMatchObject({ version: '1.0.0-rc.1', registry: 'registry.example/team' })
  })

  test.each(['', '0.2.0', 'v0.2', 'v01.2.3', 'v1.2.3+build', 'v1.2.3-', 'v1.2.3\n', "v1.2.3'"])('rejects the version %j', (tag) => {
    expect(() => describeTarget({ tag, repository: 'a/b' })).toThrow(`VERSION is ${JSON.stringify(tag)}; it must be v, a semantic version`)
  })

  test('rejects a repository without an owner', () => {
    expect(() => describeTarget({ tag: 'v0.2.0', repository: 'proxy-service' })).toThrow('it must be owner/name')
  })
})

describe('readChartFiles', () => {
  test('sets versions and registry of the chart proxy and leaves its other files as they are', async () => {
    const files = new Map((await readChartFiles('proxy', target)).map(({ path, content }) => [path, content.toString()]))
    expect(parse(files.get('proxy/Chart.yaml') ?? '')).toMatchObject({ name: 'proxy', version: '0.2.0', appVersion: '0.2.0' })
    expect(parse(files.get('proxy/values.yaml') ?? '')).toMatchObject({ image: { registry: 'ghcr.io/example/proxy-service', tag: '' } })
    expect(files.get('proxy/templates/rbac.yaml')).toBe(await readFile(join(ROOT, 'charts/proxy/templates/rbac.yaml'), 'utf8'))
    expect([...files.keys()]).toContain('proxy/dashboards/proxy.json')
  })

  test('leaves out the files that .helmignore names', async () => {
    const paths = (await readChartFiles('proxy-crds', target)).map(({ path }) => path)
    expect(paths).toEqual(
      ['Chart.yaml', 'templates/proxybackends.yaml', 'templates/proxyparameters.yaml', 'templates/proxypolicies.yaml'].map((path) => `proxy-crds/${path}`),
    )
  })
})

test('install.yaml has the namespace, the CRDs and the operator with the image of the release', async () => {
  interface KubernetesObject {
    readonly kind: string
    readonly metadata: { readonly name: string; readonly namespace?: string }
    readonly spec?: { readonly template: { readonly spec: { readonly containers: readonly [{ readonly image: string; readonly env: readonly object[] }] } } }
  }
  const documents = parseAllDocuments(await renderInstallation(target))
  expect(documents.flatMap(({ errors }) => errors)).toEqual([])
  const objects = documents.map((document) => document.toJS() as KubernetesObject)
  const crd = 'CustomResourceDefinition'
  const access = ['ServiceAccount', 'ClusterRole', 'ClusterRoleBinding', 'ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding']
  expect(objects.map(({ kind }) => kind)).toEqual(['Namespace', crd, crd, crd, ...access, 'Service', 'Deployment'])
  const clusterWide = /^(Namespace|CustomResourceDefinition|ClusterRole|ClusterRoleBinding)$/
  expect(objects.filter(({ kind, metadata }) => (metadata.namespace === 'proxy-system') === clusterWide.test(kind))).toEqual([])
  const [container] = objects.at(-1)?.spec?.template.spec.containers ?? []
  expect(container?.image).toBe('ghcr.io/example/proxy-service/controller:v0.2.0')
  expect(container?.env).toContainEqual({ name: 'PROXY_IMAGE_REGISTRY', value: 'ghcr.io/example/proxy-service' })
})

describe('the npm package', () => {
  async function unpack(program: ExecutableName): Promise<{ readonly manifest: object; readonly bin: string }> {
    const place = join(directory, `npm-${program}`)
    await mkdir(place)
    await writeFile(join(place, 'package.tgz'), packFiles(await createPackageFiles(target, program), 1))
    await run('tar', ['-xzf', join(place, 'package.tgz'), '-C', place])
    const manifest = JSON.parse(await readFile(join(place, 'package/package.json'), 'utf8')) as { readonly bin: Readonly<Record<string, string>> }
    return { manifest, bin: join(place, 'package', manifest.bin[program] ?? '') }
  }

  test.each([
    ['proxyctl', 'proxyctl.cjs'],
    ['proxy-service', 'proxy-service.cjs'],
  ] as const)('%s runs without other packages', async (program, file) => {
    const { manifest, bin } = await unpack(program)
    expect(manifest).toMatchObject({ name: `@example/${program}`, version: '0.2.0', engines: { node: '>=22.19' }, bin: { [program]: file } })
    expect(manifest).not.toHaveProperty('dependencies')
    expect((await stat(bin)).mode & 0o111).toBe(0o111)
    expect((await run(process.execPath, [bin, '--help'], { env })).stdout).toMatch(new RegExp(`^usage: ${program} `))
  })
})

test('the gateway of a release runs Node as the container image does, and an old Node is told in one line', async () => {
  const { options, variables } = await readNodeRun()
  expect(options).toContain('--expose-gc')
  const unit = await readFile(join(ROOT, 'images/release/debian/proxy-service.service'), 'utf8')
  expect(unit).toContain(`Environment=NODE_ENV=production ${variables.join(' ')}\n`)
  expect(variables).not.toEqual([])
  // What stands before the check must be the syntax of any Node, and nothing is loaded before it.
  expect(checkNode('proxy-service')).toMatch(
    /^if \(process\.versions\.node\.localeCompare\('22\.19', .*console\.error\('proxy-service needs Node 22\.19 or newer; this is '/,
  )
})

test('a bundled program reports the version of the release', async () => {
  const main = await bundleProgram('operator', join(directory, 'operator'), { version: '0.2.0' })
  expect((await run(process.execPath, [main, '--version'], { env })).stdout).toBe('0.2.0\n')
})

describe('createSbom', () => {
  interface Sbom {
    readonly components: readonly { readonly name: string; readonly purl: string; readonly hashes?: readonly object[] }[]
    readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[]
  }

  test('lists the packages of production with purl and hash, and the nearest version of each dependency', () => {
    const lockfile: Lockfile = {
      packages: {
        '': { version: '0.1.0', dependencies: { a: '1.0.0', '@s/b': '2.0.0' } },
        'node_modules/a': { version: '1.0.0', integrity: 'sha512-AQI=', license: 'MIT', dependencies: { '@s/b': '^1.0.0', missing: '1.0.0' } },
        'node_modules/a/node_modules/@s/b': { version: '1.5.0', dependencies: { c: '1.0.0' } },
        'node_modules/@s/b': { version: '2.0.0' },
        'node_modules/c': { version: '1.0.0' },
        'node_modules/test': { version: '3.0.0', dev: true },
      },
    }
    const { components, dependencies } = createSbom(lockfile, target) as Sbom
    expect(components.map(({ purl }) => purl)).toEqual(['pkg:npm/a@1.0.0', 'pkg:npm/%40s/b@1.5.0', 'pkg:npm/%40s/b@2.0.0', 'pkg:npm/c@1.0.0'])
    expect(components[0]?.hashes).toEqual([{ alg: 'SHA-512', content: '0102' }])
    expect(Object.fromEntries(dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]))).toEqual({
      'pkg:github/Example/proxy-service@v0.2.0': ['pkg:npm/%40s/b@2.0.0', 'pkg:npm/a@1.0.0'],
      'pkg:npm/a@1.0.0': ['pkg:npm/%40s/b@1.5.0'],
      'pkg:npm/%40s/b@1.5.0': ['pkg:npm/c@1.0.0'],
      'pkg:npm/%40s/b@2.0.0': [],
      'pkg:npm/c@1.0.0': [],
    })
  })

  test('lists exactly the dependencies of package.json as direct dependencies', async () => {
    const lockfile = JSON.parse(await readFile(join(ROOT, 'package-lock.json'), 'utf8')) as Lockfile
    const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { readonly dependencies: Readonly<Record<string, string>> }
    const { components, dependencies } = createSbom(lockfile, target) as Sbom
    const expected = Object.entries(manifest.dependencies).map(([name, version]) => `pkg:npm/${name.replace('@', '%40')}@${version}`)
    expect(dependencies[0]?.dependsOn).toEqual(expected.toSorted())
    expect(components.map(({ name }) => name)).not.toContain('jest')
  })
})

describe('createPluginManifest', () => {
  test('has one platform for each executable, with its checksum', () => {
    const archives = ['linux-amd64', 'darwin-arm64'].map((platform) => ({ name: `proxyctl-0.2.0-${platform}.tar.gz`, content: Buffer.from(platform) }))
    const manifest = parse(createPluginManifest(target, archives) ?? '') as {
      readonly metadata: object
      readonly spec: { readonly version: string; readonly shortDescription: string; readonly platforms: readonly object[] }
    }
    expect(manifest).toMatchObject({ apiVersion: 'krew.googlecontainertools.github.com/v1alpha2', kind: 'Plugin', metadata: { name: 'proxyctl' } })
    expect(manifest.spec.version).toBe('v0.2.0')
    // The index of krew rejects longer ones.
    expect(manifest.spec.shortDescription.length).toBeLessThanOrEqual(50)
    expect(manifest.spec.platforms).toMatchObject(
      archives.map(({ name, content }) => ({
        selector: { matchLabels: { os: name.split('-')[2], arch: name.split('-')[3]?.replace('.tar.gz', '') } },
        uri: `https://github.com/Example/proxy-service/releases/download/v0.2.0/${name}`,
        sha256: createHash('sha256').update(content).digest('hex'),
        bin: 'proxyctl',
      })),
    )
  })

  test('is undefined without executables', () => {
    expect(createPluginManifest(target, [])).toBeUndefined()
  })
})

describe('addNote', () => {
  test.each([
    ['an empty file', Buffer.alloc(0)],
    ['a script', Buffer.from('#!/bin/sh\n'.padEnd(100))],
    ['a 32-bit ELF file', Buffer.from('7f454c4601010100'.padEnd(256, '0'), 'hex')],
    ['a big-endian ELF file', Buffer.from('7f454c4602020100'.padEnd(256, '0'), 'hex')],
  ])('rejects %s', (_, program) => {
    expect(() => addNote(program, 'NAME', Buffer.from('x'))).toThrow('not a 64-bit little-endian ELF file')
  })
})

test('the health checks of Argo CD are a patch of argocd-cm with a script for each kind', async () => {
  const { data } = parse(await renderHealthChecks()) as { readonly data: Readonly<Record<string, string>> }
  expect(Object.keys(data)).toEqual(
    ['gateway.networking.k8s.io_Gateway', 'proxy.dev_ProxyBackend', 'proxy.dev_ProxyPolicy'].map((kind) => `resource.customizations.health.${kind}`),
  )
  for (const script of Object.values(data)) expect(script).toMatch(/return \{ status = /)
})

describe('writeNotes', () => {
  const changelog = (heading: string): string => `# Changelog\n\n## Unreleased\n\n- Next.\n\n${heading}\n\n- Fix of 0.2.0.\n\n## 0.1.0\n\nThe first version.\n`

  test.each(['## 0.2.0', '## v0.2.0', '## [0.2.0] - 2026-01-31'])('takes the section with the heading "%s"', (heading) => {
    expect(writeNotes(changelog(heading), target)).toMatch(/^- Fix of 0\.2\.0\.\n\n## Install\n/)
  })

  test('takes "Unreleased" if the version has no section', () => {
    expect(writeNotes(changelog('## 0.2.0-rc.1'), target)).toMatch(/^- Next\.\n\n## Install\n/)
  })

  test('rejects a changelog without entries', () => {
    expect(() => writeNotes('# Changelog\n\n## Unreleased\n\n## 0.1.0\n\n- x\n', target)).toThrow('neither a section 0.2.0 nor entries')
  })
})

describe('the command', () => {
  const release = (...args: readonly string[]) => run(process.execPath, [join(ROOT, 'images/release/main.ts'), '--no-images', '--no-executables', ...args])

  test('writes the same files each time, with their checksums', async () => {
    const [first, second] = [join(directory, 'first'), join(directory, 'second')]
    await release('--version', 'v0.2.0', '--out', first)
    await release('--version', 'v0.2.0', '--out', second)
    const sums = await readFile(join(first, 'SHA256SUMS'), 'utf8')
    expect(await readFile(join(second, 'SHA256SUMS'), 'utf8')).toBe(sums)
    const names = [
      'argocd-health.yaml',
      'config.schema.json',
      'gateway-api-conformance.yaml',
      'inference-extension-conformance.yaml',
      'install.yaml',
      'proxy-0.2.0.tgz',
      'proxy-crds-0.2.0.tgz',
      'proxy-kustomize-0.2.0.tgz',
      'proxy-service-0.2.0.tgz',
      'proxy-service.service',
      'proxyctl-0.2.0.tgz',
      'release-notes.md',
      'sbom.cdx.json',
      'v1alpha1.schema.json',
    ]
    expect((await readdir(first)).toSorted()).toEqual(['SHA256SUMS', ...names])
    const lines = names.map(
      async (name) =>
        `${createHash('sha256')
          .update(await readFile(join(first, name)))
          .digest('hex')}  ${name}\n`,
    )
    expect(sums).toBe((await Promise.all(lines)).join(''))
  })

  test('adds executables of another machine and lists them in the manifest for krew', async () => {
    const [given, out] = [join(directory, 'given'), join(directory, 'fourth')]
    await mkdir(given)
    const archive = 'proxyctl-0.2.0-darwin-arm64.tar.gz'
    await writeFile(join(given, archive), 'darwin')
    await writeFile(join(given, 'notes.txt'), 'no archive')
    await release('--version', 'v0.2.0', '--executables', given, '--out', out)
    const names = await readdir(out)
    expect(names).toEqual(expect.arrayContaining([archive, 'krew-proxyctl.yaml']))
    expect(names).not.toContain('notes.txt')
    expect(await readFile(join(out, 'SHA256SUMS'), 'utf8')).toMatch(new RegExp(`  ${archive}$`, 'm'))
    const { spec } = parse(await readFile(join(out, 'krew-proxyctl.yaml'), 'utf8')) as { readonly spec: { readonly platforms: readonly object[] } }
    expect(spec.platforms).toMatchObject([{ selector: { matchLabels: { os: 'darwin', arch: 'arm64' } } }])
  })

  test('reports a missing version', async () => {
    await expect(release('--out', join(directory, 'third'))).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^release: VERSION is ""; it must be v, /),
    })
  })
})
