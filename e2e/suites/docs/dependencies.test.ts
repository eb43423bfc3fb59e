import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { readPackageImports } from './imports.ts'
import { listFiles, readText, root } from './tree.ts'

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

/** A row of docs/adr/dependencies.md: a package and the contents of its column "where". */
interface LedgerRow {
  readonly name: string
  /** Top-level directories that import it. */
  readonly directories: readonly string[]
  /** Files that run or configure it. */
  readonly files: readonly string[]
  /** Packages that need it beside them: `peer of` in the ledger. */
  readonly peers: readonly string[]
}

const LEDGER = 'docs/adr/dependencies.md'
const manifest = JSON.parse(readText('package.json')) as Manifest
const runTime = readLedger('At run time')
const development = readLedger('Development')
const names = (rows: readonly LedgerRow[]): string[] => rows.map(({ name }) => name).toSorted()

/** Sources that no program runs. */
const TEST_SOURCE = /\.(?:test|e2e|bench)\.ts$|\/testing\/|\/testing\.ts$|\/testdata\/|\/property-testing\.ts$/

/** Package -> the top-level directories that import it. */
type Importers = Map<string, Set<string>>
const importers: Record<'all' | 'programs', Importers> = { all: new Map(), programs: new Map() }

beforeAll(() => {
  for (const path of listFiles().filter((file) => /\.[jt]sx?$/.test(file) && file.includes('/'))) {
    const directory = path.slice(0, path.indexOf('/'))
    for (const { name, isType } of readPackageImports(path, readText(path))) {
      add(importers.all, name, directory)
      if (!isType && !TEST_SOURCE.test(path)) add(importers.programs, name, directory)
    }
  }
})

describe(`the ledger ${LEDGER}`, () => {
  test('has exactly one row for each dependency', () => {
    expect(names(runTime)).toEqual(Object.keys(manifest.dependencies).toSorted())
  })

  test('has exactly one row for each development dependency', () => {
    expect(names(development)).toEqual(Object.keys(manifest.devDependencies).toSorted())
  })

  test.each(runTime)('names the directories whose programs import $name', ({ name, directories }) => {
    expect(directories).toEqual(sorted(importers.programs.get(name)))
  })

  test.each(development)('names the directories that import $name', ({ name, directories }) => {
    expect(directories).toEqual(sorted(importers.all.get(importedName(name))))
  })

  test.each([...runTime, ...development])('says where $name is used', ({ name, directories, files, peers }) => {
    expect([...directories, ...files, ...peers]).not.toEqual([])
    for (const file of files) expect(commandsOf(name).some((command) => readText(file).includes(command))).toBe(true)
    for (const peer of peers) expect(Object.keys(readManifest(peer).peerDependencies ?? {})).toContain(name)
  })
})

test.each(['dataplane', 'operator'])('programs of %s import no development dependency', (directory) => {
  const imported = [...importers.programs].filter(([, directories]) => directories.has(directory)).map(([name]) => name)
  expect(imported.filter((name) => name in manifest.devDependencies)).toEqual([])
})

test('.nvmrc names the Node that .ci/exec installs', () => {
  expect(readText('.nvmrc').trim()).toBe(/^PINNED=(.*)$/m.exec(readText('.ci/exec'))?.[1])
})

function readLedger(heading: string): LedgerRow[] {
  const section = readText(LEDGER).split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith('| `'))
  return rows.map((line) => {
    const [, name = '', where = ''] = line.split('|')
    const entries = [...where.matchAll(/(peer of )?`([^`]+)`/g)].map(([, peer, entry = '']) => ({ isPeer: peer !== undefined, entry }))
    const places = entries.filter(({ isPeer }) => !isPeer).map(({ entry }) => entry)
    const isFile = (place: string): boolean => statSync(join(root, place), { throwIfNoEntry: false })?.isFile() === true
    return {
      name: name.replaceAll(/[` ]/g, ''),
      directories: places.filter((place) => !isFile(place)),
      files: places.filter(isFile),
      peers: entries.filter(({ isPeer }) => isPeer).map(({ entry }) => entry),
    }
  })
}

function add(to: Importers, name: string, directory: string): void {
  const directories = to.get(name) ?? new Set()
  to.set(name, directories.add(directory))
}

const sorted = (directories: ReadonlySet<string> = new Set()): string[] => [...directories].toSorted()

/** Types are used where what they describe is imported. */
const importedName = (name: string): string => (name.startsWith('@types/') ? name.slice('@types/'.length) : name)

interface InstalledManifest {
  readonly bin?: string | Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

const readManifest = (name: string): InstalledManifest =>
  JSON.parse(readFileSync(join(root, 'node_modules', name, 'package.json'), 'utf8')) as InstalledManifest

/** What a file that runs or configures a package may call it: its name or one of its commands. */
function commandsOf(name: string): string[] {
  const { bin = {} } = readManifest(name)
  return [name, ...(typeof bin === 'string' ? [] : Object.keys(bin))]
}
