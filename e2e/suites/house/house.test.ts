import { posix } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { checkFile, findCircle, findUpward, findUses, isTestCode } from './check.ts'
import { renderReadmes } from './readmes.ts'
import { listFiles, readText } from '../docs/tree.ts'
import { readTable } from './table.ts'

const table = readTable()
const sources = listFiles('*.ts', '*.tsx').filter((path) => !path.startsWith('gen/'))

describe('docs/adr/house.json', () => {
  test('allows every import of the repository, and nothing impure in pure directories', () => {
    expect(sources.length).toBeGreaterThan(500)
    expect(sources.flatMap((path) => checkFile(table, path, readText(path)))).toEqual([])
  })

  test('has no circle of directories, types included', () => {
    expect(findCircle(table)).toBeUndefined()
    const circular = { rooms: [], directories: { a: { imports: ['b'] }, b: { types: ['c'] }, c: { imports: ['a'] } }, tests: {} }
    expect(findCircle(circular)).toEqual(['a', 'b', 'c', 'a'])
  })

  test('has no import from a room of the data plane into one above it, types included', () => {
    expect(findUpward(table)).toEqual([])
    const upward = { rooms: ['d/a', 'd/b'], directories: { 'd/a': { imports: ['d/b'] }, 'd/b/c': { types: ['d/a/x'] }, 'd/a/x': { imports: ['e'] } } }
    expect(findUpward(upward)).toEqual(['d/b/c -> d/a/x'])
  })

  test('no two product files export classes of one name', () => {
    const classes = sources
      .filter((path) => !isTestCode(path))
      .flatMap((path) => [...readText(path).matchAll(/^export (?:abstract )?class (\w+)/gm)].map(([, name]) => name))
    expect(classes.filter((name, index) => classes.indexOf(name) !== index)).toEqual([])
  })

  test('names only directories and files that exist', () => {
    const paths = listFiles('*')
    const exists = (key: string): boolean => paths.some((path) => path === key || path.startsWith(`${key}/`))
    const named = Object.entries(table.directories).flatMap(([key, { imports = [], types = [] }]) => [key, ...imports, ...types])
    expect([...named, ...Object.keys(table.tests), ...Object.values(table.tests).flat()].filter((key) => !exists(key))).toEqual([])
  })

  test('lists no import that nothing uses', () => {
    const uses = findUses(
      table,
      sources.map((path) => [path, readText(path)] as const),
    )
    const unused = Object.entries(table.directories).flatMap(([key, { imports = [], types = [] }]) =>
      [...imports, ...types].filter((other) => uses.get(key)?.has(other) !== true).map((other) => `${key}: ${other}`),
    )
    expect(unused).toEqual([])
  })

  test.each([...renderReadmes(table)].map(({ path, text, expected }) => [path, text, expected] as const))(
    '%s has the line that `make generate` writes',
    (_, text, expected) => {
      expect(text).toBe(expected)
    },
  )
})

/** What reviewers planted in 6bd28a9, where lint found four of twelve, at the paths of today. */
describe('a planted import', () => {
  test.each([
    ['dataplane/gateway/gateway.ts', "await import('../../operator/main.ts')"],
    ['api/errors.ts', "await import('hono')"],
    ['e2e/harness/wait.ts', "import '../../operator/main.ts'"],
    ['e2e/harness/wait.ts', "await import('../../dataplane/main.ts')"],
    ['dataplane/gateway/gateway.ts', "import { names } from '../../cdk8s/names.ts'"],
    ['operator/translate/translate.ts', "import { connect } from '../kube/connection.ts'"],
    ['operator/translate/translate.ts', 'export const now = Date.now()'],
    ['api/errors.ts', "import { readFileSync } from 'node:fs'"],
    ['api/errors.ts', "import { bundleDataplane } from '../images/bundle.ts'"],
    ['dataplane/http/body.ts', "import { Gateway } from '../gateway/gateway.ts'"],
    ['dataplane/http/body.ts', "import type { LlmCall } from '../llm/call.ts'"],
    ['dataplane/policy/csrf/index.ts', "import { compileCors } from '../../policy/cors/index.ts'"],
    ['dataplane/policy/csrf/index.ts', "import { createLlmService } from '../../llm/service.ts'"],
  ])('of %s is found: %s', (path, line) => {
    expect(checkFile(table, path, line)).toHaveLength(1)
  })

  test.each([
    ['a type import by import()', 'dataplane/http/body.ts', "export type A = import('../llm/call.ts').LlmCall"],
    ['a re-export', 'dataplane/http/body.ts', "export { forward } from '../forward/forward.ts'"],
    ['randomness', 'api/duration.ts', 'export const r = Math.random()'],
    ['the environment', 'api/duration.ts', "export const r = process.env['A']"],
    ['a timer', 'dataplane/route/table.ts', 'setTimeout(() => undefined, 1)'],
    ['test code', 'dataplane/http/body.ts', "import { testRequest } from '../testing/exchange.ts'"],
    ['a package', 'dataplane/http/body.ts', "import { Hono } from 'hono'"],
  ])('is found if it is %s', (_, path, line) => {
    expect(checkFile(table, path, line)).toHaveLength(1)
  })
})

describe('the layout', () => {
  test.each(['dataplane', 'operator', 'e2e'])('%s/ holds no source file but main.ts', (top) => {
    expect(sources.filter((path) => posix.dirname(path) === top && posix.basename(path) !== 'main.ts')).toEqual([])
  })

  test('dataplane/ has the rooms of the table, each with a README, and no other directory', () => {
    const directories = new Set(listFiles('*').flatMap((path) => /^dataplane\/[^/]+(?=\/)/.exec(path) ?? []))
    expect([...directories].sort()).toEqual([...table.rooms].sort())
    expect(table.rooms.filter((room) => listFiles(`${room}/README.md`).length === 0)).toEqual([])
  })

  test('no directory has more than 25 source files', () => {
    const counts = new Map<string, number>()
    for (const path of sources.filter((one) => !isTestCode(one) || one.startsWith('e2e/')).filter((one) => !/\.(test|e2e)\.ts$/.test(one)))
      counts.set(posix.dirname(path), (counts.get(posix.dirname(path)) ?? 0) + 1)
    expect([...counts].filter(([, count]) => count > 25)).toEqual([])
  })

  test('file and directory names are in kebab-case', () => {
    expect(sources.filter((path) => !/^[a-z0-9./-]+$/.test(path))).toEqual([])
  })
})
