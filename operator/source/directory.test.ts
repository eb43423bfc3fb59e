import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { mkdir, mkdtemp, rename, rm, symlink, unlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadDirectory, watchDirectory, type DirectorySource, type Load } from './directory.ts'
import { createReader } from './reader.ts'

const secret = (name: string, value = 'v', extra = ''): string =>
  `apiVersion: v1\nkind: Secret\nmetadata: {name: ${name}}\nstringData: {key: ${value}}\n${extra}`
const valueOf = (load: Load, name: string): string | undefined => {
  const data = load.snapshot.get('Secret', 'default', name)?.data?.['key']
  return data === undefined ? undefined : Buffer.from(data, 'base64').toString()
}

let root = ''
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'proxy-source-'))
})
afterEach(() => rm(root, { recursive: true }))
const write = (file: string, text: string): Promise<void> => writeFile(join(root, file), text)

describe('reading a directory', () => {
  test('reads a tree of YAML and JSON files and ignores other files', async () => {
    await mkdir(join(root, 'sub/deeper'), { recursive: true })
    await write('a.yaml', `${secret('one')}---\n${secret('two')}`)
    await write('sub/b.yml', secret('three'))
    await write('sub/deeper/c.json', JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'four' } }))
    await write('notes.txt', 'kind: Nonsense')
    await write('.hidden.yaml', secret('hidden'))
    const { snapshot, problems } = await loadDirectory(root)
    expect(snapshot.list('Secret').map(({ metadata }) => metadata.name)).toEqual(['four', 'one', 'three', 'two'])
    expect(problems).toEqual([])
  })

  test('follows the symbolic links of mounted ConfigMaps', async () => {
    await mkdir(join(root, '..data'))
    await write('..data/a.yaml', secret('linked'))
    await symlink(join(root, '..data/a.yaml'), join(root, 'a.yaml'))
    expect(valueOf(await loadDirectory(root), 'linked')).toBe('v')
  })

  test('follows a link to a directory above only once', async () => {
    await mkdir(join(root, 'sub'))
    await write('a.yaml', secret('one'))
    await write('sub/b.yaml', secret('two'))
    await symlink(root, join(root, 'sub/loop'))
    const { snapshot, problems } = await loadDirectory(root)
    expect([snapshot.list('Secret').length, problems]).toEqual([2, []])
  })

  test.each<[string, (text: string) => string]>([
    ['a byte order mark', (text) => `\uFEFF${text}`],
    ['a byte order mark before a marker', (text) => `\uFEFF---\n${text}`],
    ['lines that end in CR LF', (text) => text.replaceAll('\n', '\r\n')],
    ['a YAML directive', (text) => `%YAML 1.2\n---\n${text}`],
    ['markers with nothing between them', (text) => `# a comment\n---\n---\n${text}---\n`],
  ])('reads a file with %s', async (_, change) => {
    await write('a.yaml', change(`${secret('one').replace('{key: v}', '\n  key: |\n    v\n    w')}---\n${secret('two')}`))
    const load = await loadDirectory(root)
    expect([valueOf(load, 'one'), valueOf(load, 'two'), load.problems]).toEqual(['v\nw\n', 'v', []])
  })

  test('accepts a single file', async () => {
    await write('only.yaml', secret('one', 'v', 'oops: 1\n'))
    const { problems } = await loadDirectory(join(root, 'only.yaml'))
    expect(problems.map(({ text }) => text)).toEqual([expect.stringMatching(/^only\.yaml:5:1: oops: unknown field; known here: /)])
  })

  test('throws when there is no such directory', async () => {
    await expect(loadDirectory(join(root, 'nope'))).rejects.toThrow(/ENOENT/)
  })

  test('implies the GatewayClass, unless there is one of that name', async () => {
    expect((await loadDirectory(root)).snapshot.get('GatewayClass', '', 'proxy')?.spec.controllerName).toBe('proxy.dev/proxy')
    await write(
      'class.yaml',
      'apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: proxy}\nspec: {controllerName: example.com/other}',
    )
    expect((await loadDirectory(root)).snapshot.get('GatewayClass', '', 'proxy')?.spec.controllerName).toBe('example.com/other')
  })

  test('makes earlier objects older, unless creationTimestamp is set', async () => {
    await write('b.yaml', secret('third'))
    await write(
      'a.yaml',
      `${secret('first')}---\n${secret('second')}---\n${secret('dated').replace('{name: dated}', '{name: dated, creationTimestamp: "2024-01-01T00:00:00Z"}')}`,
    )
    const { snapshot } = await loadDirectory(root)
    const times = ['first', 'second', 'third', 'dated'].map((name) => snapshot.get('Secret', 'default', name)?.metadata.creationTimestamp ?? '')
    expect(times[3]).toBe('2024-01-01T00:00:00Z')
    expect(times.slice(0, 3).toSorted()).toEqual(times.slice(0, 3))
    expect(new Set(times).size).toBe(4)
    expect((await loadDirectory(root)).snapshot.get('Secret', 'default', 'third')?.metadata.creationTimestamp).toBe(times[2])
  })

  test('keeps the first of two objects with one name, and reports the second', async () => {
    await write('a.yaml', secret('one', 'first'))
    await write('b.yaml', `# comment\n${secret('one', 'second')}`)
    const load = await loadDirectory(root)
    expect(valueOf(load, 'one')).toBe('first')
    expect(load.problems.map(({ text }) => text)).toEqual([
      'b.yaml:4:12: metadata.name: Secret default/one is already defined at a.yaml:3; that one counts [PX2011]',
    ])
  })

  test('reports a duplicate cluster-scoped object without a namespace', async () => {
    const text = 'apiVersion: v1\nkind: Namespace\nmetadata: {name: one}\n'
    await write('a.yaml', `${text}---\n${text}`)
    expect((await loadDirectory(root)).problems.map(({ text: each }) => each)).toEqual([
      'a.yaml:7:12: metadata.name: Namespace one is already defined at a.yaml:3; that one counts [PX2011]',
    ])
  })

  test('counts lines from the start of the file in every document', async () => {
    await write('a.yaml', `# header\n---\n${secret('one')}---\n${secret('two', 'v', 'oops: 1\n')}`)
    expect((await loadDirectory(root)).problems.map(({ line, field }) => [line, field])).toEqual([[12, 'oops']])
  })
})

describe('a broken object keeps its last good version:', () => {
  test.each<[string, (good: string) => string, Record<string, string | undefined>]>([
    ['one object gets an unknown field', () => `${secret('one', 'new', 'oops: 1\n')}---\n${secret('two', 'new')}`, { one: 'old', two: 'new' }],
    ['one document no longer parses', () => `${secret('one', 'new')}---\nkind: [\n`, { one: 'new', two: 'old' }],
    ['one document loses its kind', () => `${secret('one', 'new')}---\n${secret('two', 'new').replace('kind: Secret\n', '')}`, { one: 'new', two: 'old' }],
    ['the whole file turns to garbage', () => '}{', { one: 'old', two: 'old' }],
    ['one object is removed from a valid file', () => secret('one', 'new'), { one: 'new', two: undefined }],
  ])('%s', async (_, breakIt, expected) => {
    const good = `${secret('one', 'old')}---\n${secret('two', 'old')}`
    const reader = createReader(root)
    await write('a.yaml', good)
    expect((await reader.load()).problems).toEqual([])
    await write('a.yaml', `${breakIt(good)}\n# which changes its length, since the clock of a file system is coarse\n`)
    const load = await reader.load()
    expect(Object.fromEntries(Object.keys(expected).map((name) => [name, valueOf(load, name)]))).toEqual(expected)
    expect(load.problems.length > 0).toBe(expected['two'] !== undefined)

    await write('a.yaml', `${good.replaceAll('old', 'fixed')}\n`)
    const fixed = await reader.load()
    expect([valueOf(fixed, 'one'), valueOf(fixed, 'two'), fixed.problems]).toEqual(['fixed', 'fixed', []])
  })

  test('an object that was never valid is absent, and the others are present', async () => {
    await write('a.yaml', `${secret('bad', 'v', 'oops: 1\n')}---\n${secret('good')}`)
    const load = await loadDirectory(root)
    expect([valueOf(load, 'bad'), valueOf(load, 'good')]).toEqual([undefined, 'v'])
  })

  test('unchanged objects keep their identity', async () => {
    const reader = createReader(root)
    await write('a.yaml', `${secret('one', 'old')}---\n${secret('two')}`)
    const before = await reader.load()
    // Of another length: both may have been written at one tick of the file system's clock.
    await write('a.yaml', `${secret('one', 'newer')}---\n${secret('two')}`)
    const after = await reader.load()
    expect(after.snapshot.get('Secret', 'default', 'two')).toBe(before.snapshot.get('Secret', 'default', 'two'))
    expect(after.snapshot.get('Secret', 'default', 'one')).not.toBe(before.snapshot.get('Secret', 'default', 'one'))
  })
})

describe('watching a directory', () => {
  let source: DirectorySource | undefined
  let loads: Load[] = []
  let wake: (() => void) | undefined
  let errors: unknown[] = []
  afterEach(() => source?.close())

  // The default is long, so that a file that is replaced does not look removed on a slow machine.
  const start = async (graceMs = 60_000): Promise<DirectorySource> => {
    loads = []
    const reported: unknown[] = []
    errors = reported
    source = await watchDirectory(
      root,
      (load) => {
        loads.push(load)
        wake?.()
      },
      { debounceMs: 10, pollMs: 100, graceMs, onError: (error) => reported.push(error) },
    )
    return source
  }
  /** Waits until a load satisfies `isWanted`. */
  const until = async (isWanted: (load: Load) => boolean): Promise<Load> => {
    for (;;) {
      const found = loads.findLast(isWanted)
      if (found) return found
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }

  test('an edit, a new file in a new folder, and a removal are seen', async () => {
    await write('a.yaml', secret('one', 'old'))
    const { current } = await start(60)
    expect(valueOf(current(), 'one')).toBe('old')
    await write('a.yaml', secret('one', 'new'))
    await until((load) => valueOf(load, 'one') === 'new')
    await mkdir(join(root, 'sub'))
    await write('sub/b.yaml', secret('two'))
    await until((load) => valueOf(load, 'two') === 'v')
    await unlink(join(root, 'a.yaml'))
    await until((load) => valueOf(load, 'one') === undefined)
    expect(valueOf(current(), 'two')).toBe('v')
  })

  test('a link to itself ends neither the watch nor the process', async () => {
    await write('a.yaml', secret('one', 'old'))
    await symlink('x.yaml', join(root, 'x.yaml'))
    await start(60)
    await symlink('y.yaml', join(root, 'y.yaml'))
    await write('a.yaml', secret('one', 'new'))
    await until((load) => valueOf(load, 'one') === 'new')
    expect(errors).toEqual([])
  })

  test('an object stays while an editor replaces its file by renaming', async () => {
    await write('a.yaml', secret('one', 'old'))
    await start()
    await rename(join(root, 'a.yaml'), join(root, 'a.yaml~'))
    await new Promise((resolve) => setTimeout(resolve, 40))
    await write('a.yaml.tmp', secret('one', 'new'))
    await rename(join(root, 'a.yaml.tmp'), join(root, 'a.yaml'))
    await until((load) => valueOf(load, 'one') === 'new')
    expect(loads.every((load) => valueOf(load, 'one') !== undefined)).toBe(true)
  })

  test('an object stays while its file is emptied and written again', async () => {
    await write('a.yaml', secret('one', 'old'))
    await start()
    await write('a.yaml', '')
    await new Promise((resolve) => setTimeout(resolve, 30))
    await write('a.yaml', secret('one', 'new'))
    await until((load) => valueOf(load, 'one') === 'new')
    expect(loads.every((load) => valueOf(load, 'one') !== undefined)).toBe(true)
  })

  test('a mistake and its repair are reported', async () => {
    await write('a.yaml', secret('one', 'old'))
    await start()
    await write('a.yaml', secret('one', 'new', 'oops: 1\n'))
    const broken = await until((load) => load.problems.length === 1)
    expect([valueOf(broken, 'one'), broken.problems[0]?.file, broken.problems[0]?.line]).toEqual(['old', 'a.yaml', 5])
    await write('a.yaml', secret('one', 'new'))
    await until((load) => load.problems.length === 0 && valueOf(load, 'one') === 'new')
  })

  test('the last state stays when the directory is removed, and each removal is reported once', async () => {
    await write('a.yaml', secret('one'))
    const { current } = await start()
    await rename(root, `${root}-moved`)
    while (errors.length === 0) await new Promise((resolve) => setTimeout(resolve, 10))
    await new Promise((resolve) => setTimeout(resolve, 350))
    expect([valueOf(current(), 'one'), errors.length]).toEqual(['v', 1])
    await rename(`${root}-moved`, root)
    await write('a.yaml', secret('one', 'new'))
    await until((load) => valueOf(load, 'one') === 'new')
    await rename(root, `${root}-moved`)
    while (errors.length === 1) await new Promise((resolve) => setTimeout(resolve, 10))
    await rename(`${root}-moved`, root)
  })
})
