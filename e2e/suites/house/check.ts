import { posix } from 'node:path'
import { parseSource, type Import } from './imports.ts'
import { longestKey, type Table } from './table.ts'

/** Tests, and code that only tests use: no product code may import it. */
const testCode = /\.(test|e2e|bench)\.ts$|(^|\/)testing\/|(^|[/-])testing\.ts$|\/corpus\/|\/testdata\//

export const isTestCode = (path: string): boolean => testCode.test(path) || /^e2e\/(suites|examples)\//.test(path)

/** Path in the repository of a module of ours; undefined for packages and Node's modules. */
function resolveImport(from: string, specifier: string): string | undefined {
  if (specifier.startsWith('#')) return specifier.slice(1)
  return specifier.startsWith('.') ? posix.join(posix.dirname(from), specifier) : undefined
}

/** `@scope/name` or `name` of a package, `node:name` of a Node module. */
export function packageOf(specifier: string): string {
  if (specifier.startsWith('node:')) return specifier
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}

/** What is wrong with the imports of one file, one sentence each; empty if nothing is. */
export function checkFile(table: Table, path: string, text: string): readonly string[] {
  const { imports, impurities } = parseSource(path, text)
  const isTest = isTestCode(path)
  const own = longestKey(Object.keys(table.directories), path)
  if (own === undefined) return [`${path}: no entry of docs/adr/house.json holds for this file; add its directory`]
  const entry = table.directories[own] ?? {}
  const extra = isTest ? (table.tests[longestKey(Object.keys(table.tests), path) ?? ''] ?? []) : []
  const problems = imports.flatMap((one) => {
    const target = resolveImport(path, one.specifier)
    const problem = target === undefined ? checkPackage(one) : checkTarget(target, one)
    return problem === undefined ? [] : [`${path}: ${problem}`]
  })
  if (entry.pure !== true || isTest) return problems
  return [...problems, ...impurities.map((impurity) => `${path}: ${impurity} is used, but ${own} is pure; pass the value in`)]

  function checkPackage({ specifier, isType, names }: Import): string | undefined {
    if (isTest || isType) return undefined
    const name = packageOf(specifier)
    const { packages = [] } = entry
    if (packages.includes(name) || (names.length > 0 && names.every((imported) => packages.includes(`${name}#${imported}`)))) return undefined
    if (name.startsWith('node:') && entry.pure !== true) return undefined
    return `imports ${specifier}; packages of ${own} are ${packages.join(', ') || 'none'}`
  }

  function checkTarget(target: string, { isType }: Import): string | undefined {
    if (!isTest && isTestCode(target) && !target.startsWith('e2e/')) return `imports ${target}, which is test code`
    // The version of the programs.
    if (target === 'package.json') return undefined
    const other = longestKey(Object.keys(table.directories), target)
    if (other === undefined) return `imports ${target}, for which docs/adr/house.json has no entry`
    if (other === own) return undefined
    if (entry.imports?.includes(other) === true || longestKey(extra, target) !== undefined) return undefined
    const isTypeAllowed = entry.types?.includes(other) === true
    if (isTypeAllowed && isType) return undefined
    return isTypeAllowed ? `imports values of ${other}; ${own} may import its types only` : `imports ${target}; ${own} may not import ${other}`
  }
}

/** Keys of the table that the source files of each directory import; tests do not count. */
export function findUses(table: Table, sources: Iterable<readonly [path: string, text: string]>): ReadonlyMap<string, ReadonlySet<string>> {
  const keys = Object.keys(table.directories)
  const uses = new Map(keys.map((key) => [key, new Set<string>()]))
  for (const [path, text] of sources) {
    if (isTestCode(path)) continue
    for (const { specifier } of parseSource(path, text).imports) {
      const target = resolveImport(path, specifier)
      const other = target === undefined ? undefined : longestKey(keys, target)
      if (other !== undefined) uses.get(longestKey(keys, path) ?? '')?.add(other)
    }
  }
  return uses
}

/** Imports of the table, types included, from a room into one above it, as `from -> to`. */
export function findUpward({ rooms, directories }: Pick<Table, 'rooms' | 'directories'>): readonly string[] {
  const floorOf = (key: string): number => rooms.indexOf(longestKey(rooms, key) ?? '')
  return Object.entries(directories).flatMap(([key, { imports = [], types = [] }]) =>
    [...imports, ...types].filter((other) => floorOf(other) !== -1 && floorOf(other) < floorOf(key)).map((other) => `${key} -> ${other}`),
  )
}

/** A circle of directories in the table, first and last the same; undefined if there is none. */
export function findCircle({ directories }: Table): readonly string[] | undefined {
  const finished = new Set<string>()
  const visit = (key: string, path: readonly string[]): readonly string[] | undefined => {
    if (path.includes(key)) return [...path.slice(path.indexOf(key)), key]
    if (finished.has(key)) return undefined
    const { imports = [], types = [] } = directories[key] ?? {}
    for (const other of [...imports, ...types]) {
      const circle = visit(other, [...path, key])
      if (circle !== undefined) return circle
    }
    finished.add(key)
    return undefined
  }
  for (const key of Object.keys(directories)) {
    const circle = visit(key, [])
    if (circle !== undefined) return circle
  }
  return undefined
}
