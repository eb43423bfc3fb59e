import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { stripTypes } from '#api/plugin/syntax.ts'
import { main } from './proxyctl.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'proxyctl-plugin-'))
})
afterEach(() => rm(directory, { recursive: true }))

async function run(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  let [stdout, stderr] = ['', '']
  const terminal = {
    env: {},
    isTerminal: false,
    readInput: async () => '',
    write: (text: string) => void (stdout += text),
    writeError: (text: string) => void (stderr += text),
  }
  return { code: await main(args, terminal), stdout, stderr }
}

async function write(name: string, text: string): Promise<string> {
  const path = join(directory, name)
  await writeFile(path, text)
  return path
}

/** Makes the packages of this checkout those of the plugin. */
const installPackages = (): Promise<void> => symlink(join(import.meta.dirname, '../../node_modules'), join(directory, 'node_modules'))

const sourceOf = (manifest: string): string => (parse(manifest) as { data: Record<string, string> }).data['index.ts'] ?? ''

describe('proxyctl plugin init', () => {
  test.each(['tenants', 'My Plugin!', '123', 'true', `${'a'.repeat(59)}-long`])('writes manifests without an error to the directory %s', async (name) => {
    const target = join(directory, name)
    expect(await run('plugin', 'init', target)).toMatchObject({ code: 0, stderr: '' })
    expect((await readdir(target)).toSorted()).toEqual(['index.ts', 'manifests.yaml', 'plugin.yaml'])
    expect(await run('lint', target)).toMatchObject({ code: 0, stdout: expect.stringContaining('no error') })
  })

  test('writes the ConfigMap that plugin build prints', async () => {
    const target = join(directory, 'tenants')
    await run('plugin', 'init', target)
    const { stdout } = await run('plugin', 'build', join(target, 'index.ts'))
    expect(stdout).toBe(await readFile(join(target, 'plugin.yaml'), 'utf8'))
    expect(sourceOf(stdout)).toBe(await readFile(join(target, 'index.ts'), 'utf8'))
  })

  test('prints a command that a shell runs', async () => {
    const target = join(directory, "Ann's plugin")
    const { stdout } = await run('plugin', 'init', target)
    const command = stdout.slice(stdout.indexOf('proxyctl plugin build')).trim()
    const { stdout: words } = await promisify(execFile)('sh', ['-c', `printf '%s\\n' ${command}`])
    expect(words.trimEnd().split('\n').slice(3)).toEqual([join(target, 'index.ts'), 'ann-s-plugin', '--out', join(target, 'plugin.yaml')])
  })

  test('replaces no existing file', async () => {
    const file = await write('index.ts', 'mine')
    expect(await run('plugin', 'init', directory)).toMatchObject({ code: 1, stderr: expect.stringMatching(/file already exists.*index\.ts.*\[PX6013\]/) })
    expect(await readFile(file, 'utf8')).toBe('mine')
  })
})

describe('proxyctl plugin build', () => {
  test('keeps a source without imports of other modules as it is', async () => {
    const code = "import { definePlugin } from '@proxy/plugin'\nimport { format } from 'node:util'\n\n// A comment.\nexport default definePlugin({ setup })\n"
    const { stdout } = await run('plugin', 'build', await write('a.ts', code), 'mine', '-n', 'shop')
    expect(parse(stdout)).toEqual({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mine', namespace: 'shop' }, data: { 'index.ts': code } })
  })

  test('bundles packages and other files', async () => {
    await installPackages()
    await write('value.ts', "export const value: string = 'of another file'\n")
    const code = `import { definePlugin } from '@proxy/plugin'
import { requestId } from 'hono/request-id'
import { value } from './value.ts'
export default definePlugin({ setup: () => ({ request: requestId({ generator: () => value }) }) })
`
    const out = join(directory, 'plugin.yaml')
    expect(await run('plugin', 'build', await write('index.ts', code), 'mine', '--out', out)).toMatchObject({ code: 0, stderr: '' })
    const built = sourceOf(await readFile(out, 'utf8'))
    expect(built).toContain('of another file')
    expect([...built.matchAll(/^import .* from "(.*)"/gm)].map(([, name]) => name)).toEqual(['@proxy/plugin'])
    expect(() => stripTypes(built, 'index.ts')).not.toThrow()
    expect((await readdir(directory)).toSorted()).toEqual(['index.ts', 'node_modules', 'plugin.yaml', 'value.ts'])
  })

  test('bundles a table, as in the example of the documentation', async () => {
    const example = join(import.meta.dirname, '../../e2e/examples/plugin-geo')
    const { stdout } = await run('plugin', 'build', join(example, 'src/index.ts'), 'geo')
    expect(sourceOf(stdout)).toContain('198.51.100.0,198.51.100.255,BB')
    expect(stdout).toBe(await readFile(join(example, 'plugin.yaml'), 'utf8'))
  })

  test('reports the position of a module that does not exist', async () => {
    await installPackages()
    const file = await write('index.ts', "import { x } from './missing.ts'\nexport default x\n")
    const { code, stdout, stderr } = await run('plugin', 'build', file, 'mine')
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/index\.ts:1:19: Could not resolve ".\/missing\.ts".*\[PX6013\]/)
  })

  test('names the command that installs esbuild when a package is imported without it', async () => {
    const { code, stderr } = await run('plugin', 'build', await write('index.ts', "import { cors } from 'hono/cors'\n"), 'mine')
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`imports "hono/cors", and esbuild, which bundles it, is not installed; run npm install --save-dev esbuild in ${directory}`),
    ])
  })

  test('reports the position of a syntax error, and leaves the old ConfigMap', async () => {
    const out = await write('plugin.yaml', 'old')
    const file = await write('index.ts', 'export default {}\nenum A { B }\n')
    expect(await run('plugin', 'build', file, 'mine', '--out', out)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/index\.ts:2:1: .*\[PX6013\]/),
    })
    expect(await readFile(out, 'utf8')).toBe('old')
  })

  test('rejects a source that no ConfigMap can hold', async () => {
    const file = await write('index.ts', `export default { setup: () => ({}) } // ${'x'.repeat(1_048_576)}\n`)
    expect(await run('plugin', 'build', file, 'mine')).toMatchObject({ code: 1, stderr: expect.stringContaining('a ConfigMap holds at most 1048576') })
  })

  test('reports a directory that cannot be written', async () => {
    await mkdir(join(directory, 'plugin.yaml'))
    const file = await write('index.ts', 'export default {}\n')
    expect(await run('plugin', 'build', file, 'mine', '--out', join(directory, 'plugin.yaml'))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('[PX6013]'),
    })
    expect((await readdir(directory)).toSorted()).toEqual(['index.ts', 'plugin.yaml'])
  })

  test.each([
    [['init'], 2, /plugin init takes one directory/],
    [['build'], 2, /plugin build takes one file/],
    [['build', 'a.ts', 'Not_A_Name'], 2, /"Not_A_Name" is not the name of a ConfigMap/],
    [['build', '/does/not/exist.ts', 'mine'], 1, /no such file.*\[PX6009\]/],
  ])('with the arguments %j fails with status %i', async (args, expected, message) => {
    const { code, stdout, stderr } = await run('plugin', ...args)
    expect([code, stdout, stderr]).toEqual([expected, '', expect.stringMatching(message)])
  })
})
