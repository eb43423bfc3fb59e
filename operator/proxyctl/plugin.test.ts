import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { stripTypes } from '#api/plugin/syntax.ts'
import { waitUntil } from '../../e2e/harness/wait.ts'
import { watchPlugin, type Build } from './plugin/watch.ts'
import { main } from './proxyctl.ts'

/** No environment except the directory with shared libraries of Node that .ci/exec installs for a user without root. */
const env = { LD_LIBRARY_PATH: process.env['LD_LIBRARY_PATH'] }
let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'proxyctl-plugin-'))
})
afterEach(() => rm(directory, { recursive: true }))

async function run(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  let [stdout, stderr] = ['', '']
  const terminal = {
    env,
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
    expect((await readdir(target)).toSorted()).toEqual(['index.test.ts', 'index.ts', 'manifests.yaml', 'plugin.yaml'])
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

  const allowed = 'they can import @proxy/plugin and the Node modules assert, buffer, events, querystring, stream, string_decoder, url, util'

  test('lists what plugins can import when another module of Node is imported', async () => {
    await installPackages()
    const file = await write('index.ts', "import { readFileSync } from 'node:fs'\nexport default readFileSync\n")
    const { code, stderr } = await run('plugin', 'build', file, 'mine')
    expect([code, stderr]).toEqual([1, expect.stringContaining(`index.ts:1:30: plugins cannot import "node:fs"; ${allowed} [PX6013]`)])
  })

  test('lists what plugins can import when another module of Node is imported without esbuild', async () => {
    const file = await write('index.ts', "import { readFileSync } from 'node:fs'\nexport default readFileSync\n")
    expect(await run('plugin', 'build', file, 'mine')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`index.ts: plugins cannot import "node:fs"; ${allowed}`),
    })
  })

  describe('with a package', () => {
    /** Installs the package `dep` with these files beside esbuild. */
    async function makePackage(files: Readonly<Record<string, string>>): Promise<void> {
      const modules = join(directory, 'node_modules')
      await mkdir(join(modules, 'dep'), { recursive: true })
      await symlink(join(import.meta.dirname, '../../node_modules/esbuild'), join(modules, 'esbuild'))
      for (const [name, text] of Object.entries(files)) await writeFile(join(modules, 'dep', name), text)
      await write('index.ts', "import { value } from 'dep'\nexport default value\n")
    }
    const node = "import { readFileSync } from 'node:fs'\nexport const value = readFileSync\n"
    const browser = "export const value = 'of the browser build'\n"

    test.each<[string, Readonly<Record<string, string>>]>([
      [
        'the condition browser',
        { 'package.json': '{"name":"dep","exports":{"browser":"./browser.mjs","default":"./node.mjs"}}', 'node.mjs': node, 'browser.mjs': browser },
      ],
      ['the field browser', { 'package.json': '{"name":"dep","module":"node.mjs","browser":"browser.mjs"}', 'node.mjs': node, 'browser.mjs': browser }],
      [
        'a replaced file',
        {
          'package.json': '{"name":"dep","module":"index.mjs","browser":{"./node.mjs":"./browser.mjs"}}',
          'index.mjs': "export * from './node.mjs'\n",
          'node.mjs': node,
          'browser.mjs': browser,
        },
      ],
    ])('bundles its build for browsers, by %s, if the other imports modules of Node', async (_, files) => {
      await makePackage(files)
      const { code, stdout, stderr } = await run('plugin', 'build', join(directory, 'index.ts'), 'mine')
      expect([code, stderr, sourceOf(stdout)]).toEqual([0, '', expect.stringContaining('of the browser build')])
    })

    test('keeps the build that is not for browsers if that can be bundled', async () => {
      await makePackage({
        'package.json': '{"name":"dep","exports":{"browser":"./browser.mjs","default":"./node.mjs"}}',
        'node.mjs': "export { inspect as value } from 'node:util'\n",
        'browser.mjs': browser,
      })
      const { stdout } = await run('plugin', 'build', join(directory, 'index.ts'), 'mine')
      expect(sourceOf(stdout)).toContain('from "node:util"')
    })

    test.each(['fs', 'node:fs', 'node:fs/promises', 'node:child_process', 'http'])('lists what plugins can import if it needs %s', async (name) => {
      await makePackage({ 'package.json': '{"name":"dep","exports":"./index.mjs"}', 'index.mjs': `export * as value from '${name}'\n` })
      expect(await run('plugin', 'build', join(directory, 'index.ts'), 'mine')).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(
          new RegExp(`dep/index\\.mjs:1:\\d+: plugins cannot import "${name}"; ${allowed}; the package has no build for browsers without it`),
        ),
      })
    })

    test('lists what plugins can import if it is not installed', async () => {
      await makePackage({})
      await write('index.ts', "import x from 'left-pad'\nexport default x\n")
      const { stderr } = await run('plugin', 'build', join(directory, 'index.ts'), 'mine')
      expect(stderr).toContain(`index.ts:1:15: Could not resolve "left-pad": install the package; without one, plugins cannot import "left-pad"; ${allowed}`)
    })
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

  describe('with --types', () => {
    /** A project with packages of this checkout, and with the types that proxyctl writes. */
    async function makeProject(packages = ['typescript', '@typescript', 'hono']): Promise<void> {
      const modules = join(directory, 'node_modules')
      await mkdir(join(modules, '@proxy'), { recursive: true })
      for (const name of packages) await symlink(join(import.meta.dirname, '../../node_modules', name), join(modules, name))
      await run('plugin', 'package', join(directory, 'sdk'))
      await symlink(join(directory, 'sdk'), join(modules, '@proxy/plugin'))
    }

    const codeOf = (hook: string): string => `import { definePlugin } from '@proxy/plugin'

export default definePlugin<{ tenants: string[] }>({
  setup: ({ config }) => ({
    ${hook}
  }),
})
`

    test('accepts a plugin with the types of @proxy/plugin and of Hono', async () => {
      await makeProject()
      const code = codeOf(`async request(c, next) { await next(); c.header('x-tenants', config.tenants.join()) },`)
      expect(await run('plugin', 'build', '--types', await write('index.ts', code), 'mine')).toMatchObject({ code: 0, stderr: '' })
    }, 60_000)

    test.each([
      [
        'a member that config does not have',
        `async request(c, next) { await next(); c.header('x', config.tenant) },`,
        /index\.ts:5:\d+: Property 'tenant' does not exist.*\(TS2551\)/,
      ],
      [
        'a value of another type for Hono',
        `async request(c, next) { await next(); c.header('x', 1) },`,
        /index\.ts:5:\d+: No overload matches this call\. \(TS2769\)[^]*'number' is not assignable/,
      ],
      ['a hook that does not exist', `llm: { respond: () => undefined },`, /index\.ts:5:\d+: .*'respond' does not exist.*\(TS2\d+\)/],
    ])(
      'reports the position of %s, and writes nothing',
      async (_, hook, message) => {
        await makeProject()
        const file = await write('index.ts', codeOf(hook))
        expect((await run('plugin', 'build', file, 'mine')).code).toBe(0)
        const { code, stdout, stderr } = await run('plugin', 'build', '--types', file, 'mine')
        expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(message)])
        expect(stderr).toContain('[PX6013]')
      },
      60_000,
    )

    test('uses the options of the nearest tsconfig.json', async () => {
      await makeProject()
      const file = await write('index.ts', codeOf(`request: async (c, next) => { const unused = c.req.path; await next() },`))
      expect((await run('plugin', 'build', '--types', file, 'mine')).code).toBe(0)
      await write('tsconfig.json', '{ "compilerOptions": { "noUnusedLocals": true, "strict": true, "module": "esnext", "moduleResolution": "bundler" } }')
      expect(await run('plugin', 'build', '--types', file, 'mine')).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/index\.ts:5:\d+: 'unused' is declared/),
      })
    }, 60_000)

    test.each([
      [[], 'typescript, which checks types, is not installed; run npm install --save-dev typescript in'],
      [['typescript', '@typescript'], '@proxy/plugin is not installed, so that its types are not known; run proxyctl plugin package'],
    ])('names what has to be installed beside %j', async (packages, message) => {
      await mkdir(join(directory, 'node_modules'))
      for (const name of packages) await symlink(join(import.meta.dirname, '../../node_modules', name), join(directory, 'node_modules', name))
      const file = await write('index.ts', codeOf('request: (_, next) => next(),'))
      expect(await run('plugin', 'build', '--types', file, 'mine')).toMatchObject({ code: 1, stderr: expect.stringContaining(message) })
    })
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
    [['dev', 'a.ts', '--out', './a.ts'], 2, /--out: \.\/a\.ts is the source/],
    [['test', '/does/not/exist'], 1, /no such file.*\[PX6009\]/],
    [['package'], 2, /plugin package takes one directory/],
    [['bench'], 2, /plugin bench takes one file/],
    [['bench', 'a.ts', '--config', '[1]'], 2, /--config: "\[1\]" is not a JSON object/],
    [['bench', 'a.ts', '--duration', 'soon'], 2, /--duration: "soon" is not a duration/],
    [['build', 'a.ts', 'Not_A_Name'], 2, /"Not_A_Name" is not the name of a ConfigMap/],
    [['build', '/does/not/exist.ts', 'mine'], 1, /no such file.*\[PX6009\]/],
  ])('with the arguments %j fails with status %i', async (args, expected, message) => {
    const { code, stdout, stderr } = await run('plugin', ...args)
    expect([code, stdout, stderr]).toEqual([expected, '', expect.stringMatching(message)])
  })
})

describe('proxyctl plugin test', () => {
  test('runs the tests of the template, and reports a failure', async () => {
    const target = join(directory, 'tenants')
    await run('plugin', 'init', target)
    expect(await run('plugin', 'test', target)).toMatchObject({ code: 0, stdout: expect.stringMatching(/known tenants pass[^]*pass 1/), stderr: '' })
    const file = join(target, 'index.ts')
    await writeFile(file, (await readFile(file, 'utf8')).replace('403', '404'))
    expect(await run('plugin', 'test', join(target, 'index.test.ts'))).toMatchObject({ code: 1, stdout: expect.stringMatching(/404 !== 403/) })
  }, 60_000)

  test('reports a directory without tests', async () => {
    expect(await run('plugin', 'test', directory)).toMatchObject({ code: 1, stderr: expect.stringContaining('no file *.test.ts [PX6009]') })
  })
})

describe('proxyctl plugin dev', () => {
  test('builds when the source or a module of it changes, and leaves the file when there is an error', async () => {
    await installPackages()
    const file = await write('index.ts', "import { value } from './value.ts'\nexport default { setup: () => ({ request: (c) => c.text(value) }) }\n")
    await write('value.ts', "export const value = 'one'\n")
    const out = join(directory, 'plugin.js')
    const builds: Build[] = []
    const controller = new AbortController()
    const done = watchPlugin({ file, out, render: (code) => code, report: (build) => void builds.push(build), signal: controller.signal })
    const built = (text: string) => waitUntil(`a build with ${text}`, async () => (await readFile(out, 'utf8')).includes(text))
    try {
      await built('one')
      await write('value.ts', "export const value = 'two'\n")
      await built('two')
      await write('value.ts', 'export const value = \n')
      await waitUntil('the error', () => builds.some((build) => 'problem' in build && /value\.ts:2:1: Unexpected/.test(build.problem)))
      expect(await readFile(out, 'utf8')).toContain('two')
      await write('value.ts', "export const value = 'three'\n")
      await built('three')
    } finally {
      controller.abort()
      await done
    }
  }, 60_000)
})

describe('proxyctl plugin bench', () => {
  test('measures both kinds of isolation', async () => {
    const code =
      "export default { setup: ({ config }) => ({ async request(c, next) { if (c.req.header('x-a') !== config.a) return c.text('', 403); await next() } }) }\n"
    const file = await write('index.ts', code)
    const args = ['plugin', 'bench', file, '--config', '{"a":"b"}', '--duration', '200ms', '-o', 'json']
    const { code: status, stdout, stderr } = await run(...args, '--header', 'X-A: b')
    expect([status, stderr]).toEqual([0, ''])
    const row = (isolation: string, expected: number) => ({
      isolation,
      status: expected,
      micros: expect.any(Number),
      p95: expect.any(Number),
      requests: expect.any(Number),
    })
    expect(JSON.parse(stdout)).toEqual([row('InProcess', 200), row('Worker', 200)])
    expect(JSON.parse((await run(...args)).stdout)).toMatchObject([{ status: 403 }, { status: 403 }])
  }, 60_000)

  test('reports the error of the plugin', async () => {
    const file = await write('index.ts', "export default { setup: () => { throw new Error('broken') } }\n")
    expect(await run('plugin', 'bench', file, '--duration', '100ms')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/InProcess: .*index\.ts:1:\d+: Error: broken/),
    })
  }, 60_000)
})

describe('proxyctl plugin package', () => {
  test('writes a package whose modules Node can import', async () => {
    await installPackages()
    const { code, stdout } = await run('plugin', 'package', join(directory, 'sdk'))
    expect([code, stdout]).toEqual([0, expect.stringContaining('Install it: npm install --save-dev ')])
    const program = `import { testPlugin } from './sdk/testing.js'
      import { definePlugin } from './sdk/index.js'
      await testPlugin({ configSchema: { additionalProperties: false }, setup: () => ({}) }, { config: { a: 1 } }).catch(({ message }) => console.log(message))
      const { send } = await testPlugin(definePlugin({ setup: () => ({ request: (c) => c.text('mine') }) }))
      console.log(await (await send('/')).response.text())`
    const { stdout: printed } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program], { cwd: directory })
    expect(printed).toBe('config.a is not in configSchema, is 1; remove it\nmine\n')
    const { exports } = JSON.parse(await readFile(join(directory, 'sdk/package.json'), 'utf8')) as { exports: object }
    expect(Object.keys(exports)).toEqual(['.', './testing'])
  })
})
