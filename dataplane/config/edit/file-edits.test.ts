import { chmod, link, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { digestOf } from '../file/problem.ts'
import { sectionOf } from './fields.ts'
import { FileEdits } from './file-edits.ts'
import type { EditChange, EditorOutput } from './types.ts'

/** In the text, in comments, and in the environment of a program. */
const SECRETS = ['sk-written-0123456789', 'sk-aside-0123456789', 'key-of-alice-0123456789', 'token-0123456789']
const FILE = `# gateway.yaml, the key before: ${SECRETS[1]}
llm:
  models:
    gpt-4o: { openai: { apiKey: ${SECRETS[0]} } }
    claude: { anthropic: { apiKey: \${EDIT_TEST_KEY:-none}, model: claude-sonnet-4-5 } } # the other one
  policies:
    apiKeyAuthentication: { secretRef: { secret: default/clients } }
    budgets: [{ name: day, limits: [{ requests: 10, window: Day }] }]
mcp:
  tickets: { command: [a], env: { API_TOKEN: ${SECRETS[3]} } }
secrets:
  - key: default/clients
    type: opaque
    data:
      alice: '{"key":"${SECRETS[2]}","metadata":{"team":"search"}}' # ${SECRETS[1]}
`
const guard: EditChange = { path: ['llm', 'models', 'gpt-4o', 'policies', 'ai', 'promptGuard'], text: 'request: [{ regex: { builtins: [Ssn] } }]' }
const keyHash = `sha256:${'ab'.repeat(32)}`

let directory: string
let path: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'edits-'))
})
afterAll(() => rm(directory, { recursive: true }))
beforeEach(async () => {
  for (const name of await readdir(directory)) await rm(join(directory, name))
  path = join(directory, 'gateway.yaml')
  await writeFile(path, FILE, { mode: 0o640 })
})

const expectNoSecret = (output: Omit<EditorOutput, 'text'>): void => {
  for (const secret of SECRETS) expect(JSON.stringify({ ...output, text: undefined })).not.toContain(secret)
}
const names = async (): Promise<string[]> => (await readdir(directory)).sort()

describe('edits of a config file', () => {
  test('list what may be changed, and keys, without credentials', async () => {
    const output = await new FileEdits(path).read()
    expect(output.fields?.map(({ path: at }) => at.join('.'))).toEqual([
      'llm.policies.budgets',
      'mcp.policies.budgets',
      'llm.models.gpt-4o.policies.ai.promptGuard',
      'llm.models.claude.policies.ai.promptGuard',
      'mcp.tickets.tools',
      'mcp.tickets.policies.mcp.authorization',
    ])
    expect(output.keys).toEqual([
      { secret: 0, name: 'default/clients', entries: [{ name: 'alice', state: 'valid', expires: null, metadata: { team: 'search' } }] },
    ])
    expectNoSecret(output)
  })

  test('show a difference without credentials, write it in one step, and keep a copy, the mode and the comments', async () => {
    const edits = new FileEdits(path)
    const changes: EditChange[] = [
      guard,
      { key: { secret: 0, name: 'alice', action: 'rotate', keyHash } },
      { key: { secret: 0, name: 'bob', action: 'create', keyHash } },
    ]
    const revision = digestOf(FILE)
    const preview = await edits.preview(revision, changes)
    expectNoSecret(preview)
    expect(preview.problems).toEqual([])
    expect(preview.diff?.filter(({ kind }) => kind === 'added' || kind === 'removed').map(({ text }) => text)).toEqual([
      '    gpt-4o: { openai: { apiKey: <redacted> } }',
      '    gpt-4o:',
      '      openai: { apiKey: <redacted> }',
      '      policies:',
      '        ai:',
      '          promptGuard:',
      '            request: [ { regex: { builtins: [ Ssn ] } } ]',
      '      alice: <redacted> #',
      '      alice: <redacted, new> #',
      '      bob: <redacted, new>',
    ])
    expect(await readFile(path, 'utf8')).toBe(FILE)
    const { backup = '', ...written } = await edits.apply(revision, changes)
    expectNoSecret(written)
    const text = await readFile(path, 'utf8')
    expect(text).toContain('${EDIT_TEST_KEY:-none}, model: claude-sonnet-4-5 } } # the other one')
    expect(text).toContain(`alice: '{"keyHash":"${keyHash}","metadata":{"team":"search"}}' # ${SECRETS[1]}`)
    expect([await readFile(backup, 'utf8'), (await stat(path)).mode & 0o777, (await stat(backup)).mode & 0o777]).toEqual([FILE, 0o640, 0o640])
    expect(await names()).toEqual(['gateway.yaml', expect.stringMatching(/^gateway\.yaml\.[\dTZ-]+\.bak$/)])
  })

  test('reject invalid values with the findings of proxyctl lint, and write nothing', async () => {
    const invalid = await new FileEdits(path).apply(digestOf(FILE), [
      { path: ['llm', 'policies', 'budgets'], text: '- { name: a, limits: [{ request: 1, window: Day }] }' },
    ])
    expect(invalid.problems).toEqual([expect.stringMatching(/gateway\.yaml:\d+:\d+: llm\.policies\.budgets\[0\].*did you mean requests\? \[PX\d{4}\]/)])
    expect([await readFile(path, 'utf8'), await names()]).toEqual([FILE, ['gateway.yaml']])
  })

  test('reject a field that the console does not change', async () => {
    const { problems } = await new FileEdits(path).apply(digestOf(FILE), [{ path: ['mcp', 'tickets', 'command'], text: '[a]' }])
    expect(problems).toEqual([expect.stringMatching(/^mcp\.tickets\.command: is not a field that the console changes/)])
    for (const at of [['config', 'adminAddr'], ['mcp', 'tickets', 'env'], ['llm', 'models', '__proto__', 'to'], ['llm', 'models', 'a', 'to', 0], []])
      expect(sectionOf(at)).toBeUndefined()
  })

  test('reject a change of a file that was changed since it was read', async () => {
    await writeFile(path, `${FILE}# by hand\n`)
    await expect(new FileEdits(path).apply(digestOf(FILE), [guard])).rejects.toMatchObject({
      status: 409,
      message: expect.stringMatching(/^gateway\.yaml was changed since it was read/),
    })
    expect(await readFile(path, 'utf8')).toBe(`${FILE}# by hand\n`)
  })

  test.each<[string, number, () => Promise<unknown>]>([
    ['a symbolic link', 403, async () => [await writeFile(join(directory, 'target'), FILE), await rm(path), await symlink(join(directory, 'target'), path)]],
    ['a file that is read-only', 403, () => chmod(path, 0o444)],
    ['a file with another hard link', 403, () => link(path, join(directory, 'other'))],
    ['a directory', 403, async () => [await rm(path), await import('node:fs/promises').then(({ mkdir }) => mkdir(path))]],
    ['a file that is gone', 409, () => rm(path)],
    ['a file that is too large', 413, () => writeFile(path, `${FILE}# ${'x'.repeat(2 ** 20)}\n`)],
  ])('reject %s', async (_, status, prepare) => {
    await prepare()
    await expect(new FileEdits(path).apply('any', [guard])).rejects.toMatchObject({ status })
    await rm(path, { recursive: true, force: true })
  })
})
