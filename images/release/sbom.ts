import type { Target } from './target.ts'

/** `package-lock.json`, format 3. */
export interface Lockfile {
  /** Key: path of the package, such as `node_modules/a/node_modules/b`; empty for the repository itself. */
  readonly packages: Readonly<Record<string, LockedPackage>>
}

interface LockedPackage {
  readonly version?: string
  /** Hashes of the archive, such as `sha512-<base64>`. */
  readonly integrity?: string
  /** SPDX expression. */
  readonly license?: string
  readonly dev?: boolean
  readonly devOptional?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
}

const MODULES = 'node_modules/'
const nameOf = (path: string): string => path.slice(path.lastIndexOf(MODULES) + MODULES.length)
const purlOf = (name: string, version: string): string => `pkg:npm/${name.replace('@', '%40')}@${version}`

/**
 * CycloneDX 1.6 document of the npm packages of production. The programs contain them as bundles. It is computed from the lockfile and not by `npm sbom`, which
 * the npm of Debian 12 does not have, so that the same commit produces the same document.
 */
export function createSbom({ packages }: Lockfile, { version, repository }: Target): object {
  const production = Object.entries(packages).filter(([path, { dev, devOptional }]) => path !== '' && dev !== true && devOptional !== true)
  const root = `pkg:github/${repository}@v${version}`
  const references = new Map(production.map(([path, locked]) => [path, purlOf(nameOf(path), locked.version ?? '')]))
  // The same version may be installed at several paths.
  const components = new Map(production.map(([path, locked]) => [references.get(path) ?? '', describeComponent(path, locked)]))
  const edges = new Map<string, Set<string>>()
  for (const [path, { dependencies = {} }] of [['', packages[''] ?? {}] as const, ...production]) {
    const reference = references.get(path) ?? root
    const targets = edges.get(reference) ?? new Set<string>()
    for (const name of Object.keys(dependencies)) {
      const target = references.get(resolvePath(packages, path, name) ?? '')
      if (target !== undefined) targets.add(target)
    }
    edges.set(reference, targets)
  }
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', 'bom-ref': root, name: 'proxy-service', version, purl: root } },
    components: [...components.values()],
    dependencies: [...edges].map(([ref, dependsOn]) => ({ ref, dependsOn: [...dependsOn].toSorted() })),
  }
}

function describeComponent(path: string, { version = '', integrity = '', license }: LockedPackage): object {
  const name = nameOf(path)
  const purl = purlOf(name, version)
  const [, digest] = /^sha512-(\S+)/.exec(integrity) ?? []
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    purl,
    ...(digest === undefined ? {} : { hashes: [{ alg: 'SHA-512', content: Buffer.from(digest, 'base64').toString('hex') }] }),
    ...(license === undefined ? {} : { licenses: [{ expression: license }] }),
  }
}

/** Path of the package that Node loads for a name: the nearest `node_modules`. */
function resolvePath(packages: Lockfile['packages'], from: string, name: string): string | undefined {
  for (let directory = from; ; directory = directory.slice(0, Math.max(directory.lastIndexOf(`/${MODULES}`), 0))) {
    const path = `${directory === '' ? '' : `${directory}/`}${MODULES}${name}`
    if (packages[path] !== undefined) return path
    if (directory === '') return undefined
  }
}
