import { OpenAPIHono } from '@hono/zod-openapi'
import { beforeEach, describe, expect, test } from '@jest/globals'
import type { EditResult } from '#api/management/edits.ts'
import { createLogging } from '../../../observe/telemetry/log.ts'
import { guardBrowsers } from '../../admin/guard.ts'
import { registerEdits, type EditTarget, type ReadyEdit } from './edits.ts'

class Refusal extends Error {
  readonly status = 409
}

let lines: string[]
let applied: ReadyEdit[]
beforeEach(() => {
  lines = []
  applied = []
})

const target: EditTarget = {
  who: () => 'ann',
  read: () => Promise.resolve({ enabled: true, reason: null, target: 'gateway.yaml', revision: '1', fields: [], keys: [], problems: [] }),
  preview: () => Promise.resolve({ diff: [{ kind: 'added', text: 'a' }], problems: [], warnings: [] }),
  apply(edit) {
    if (edit.revision !== '1') return Promise.reject(new Refusal('gateway.yaml was changed'))
    if (edit.changes.some((change) => 'text' in change && change.text === 'wrong'))
      return Promise.resolve({ diff: [], problems: ['a is wrong'], warnings: [], revision: '1', backup: null })
    applied.push(edit)
    return Promise.resolve({ diff: [{ kind: 'added', text: 'a' }], problems: [], warnings: [], revision: '2', backup: 'b' })
  },
}

function start(given: EditTarget | string = target): OpenAPIHono {
  const app = new OpenAPIHono({ defaultHook: (result, c) => (result.success ? undefined : c.json({ error: 'invalid' }, 400)) })
  app.use(guardBrowsers(() => ({ host: '127.0.0.1', port: 15_000 })))
  const logging = createLogging({
    writer: { write: (line: string) => void lines.push(line), flushSync: () => undefined } as never,
    level: 'info',
    format: 'json',
  })
  registerEdits(app, { target: given, logging })
  return app
}

const change = { path: ['llm', 'policies', 'budgets'], text: '- secret-value-0123456789' }
const create = { key: { list: '0', name: 'bob', action: 'create' } }

async function post(app: OpenAPIHono, what: string, changes: readonly unknown[] = [change], headers: Readonly<Record<string, string>> = {}, revision = '1') {
  const response = await app.request(`http://127.0.0.1:15000/api/v1/edits/${what}`, {
    method: 'POST',
    body: JSON.stringify({ revision, changes }),
    headers: { host: '127.0.0.1:15000', 'content-type': 'application/json', ...headers },
  })
  return { status: response.status, body: (await response.json().catch(() => ({}))) as EditResult & { readonly error?: string } }
}

describe('edits of the management API', () => {
  test('are recorded with who, place, digest of the difference and outcome, without values and keys', async () => {
    const app = start()
    const { status, body } = await post(app, 'apply', [change, create])
    expect([status, body.revision, body.backup]).toEqual([200, '2', 'b'])
    expect(body.keys).toEqual([{ name: 'bob', key: expect.stringMatching(/^pxk_[\w-]{43}$/) }])
    await post(app, 'apply', [{ ...change, text: 'wrong' }])
    await post(app, 'apply', [change], {}, 'old')
    const log = lines.join('\n')
    expect(lines.map((line) => JSON.parse(line) as object)).toEqual([
      expect.objectContaining({
        who: 'ann',
        changes: 'set llm.policies.budgets, create key bob of 0',
        diff: expect.stringMatching(/^sha256:[0-9a-f]{64}$/),
        outcome: 'applied',
      }),
      expect.objectContaining({ outcome: 'rejected: invalid' }),
      expect.objectContaining({ outcome: 'rejected: gateway.yaml was changed' }),
    ])
    for (const secret of ['secret-value', body.keys[0]?.key ?? 'none']) expect(log).not.toContain(secret)
  })

  test('store the digest of a created key, and return the key once', async () => {
    const app = start()
    const [first, second] = [await post(app, 'apply', [create]), await post(app, 'apply', [create])]
    expect(first.body.keys[0]?.key).not.toBe(second.body.keys[0]?.key)
    expect(JSON.stringify(applied)).not.toContain(first.body.keys[0]?.key)
    expect(applied[0]?.changes[0]).toMatchObject({ keyHash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) })
  })

  test('are rejected with the problems if they are invalid, and with the reason if the file was changed', async () => {
    const app = start()
    expect(await post(app, 'apply', [{ ...change, text: 'wrong' }])).toMatchObject({ status: 422, body: { problems: ['a is wrong'] } })
    expect(await post(app, 'apply', [change], {}, 'old')).toMatchObject({ status: 409, body: { error: 'gateway.yaml was changed' } })
  })

  test('are rejected while they are off, with the reason', async () => {
    const app = start('edits are off in pods')
    for (const what of ['preview', 'apply']) expect(await post(app, what)).toEqual({ status: 403, body: { error: 'edits are off in pods' } })
    expect(await (await app.request('http://127.0.0.1:15000/api/v1/edits', { headers: { host: '127.0.0.1:15000' } })).json()).toMatchObject({
      enabled: false,
      reason: 'edits are off in pods',
    })
  })

  test.each<[string, number, Record<string, string>]>([
    ['a form of another page', 415, { 'content-type': 'text/plain' }],
    ['a form', 415, { 'content-type': 'application/x-www-form-urlencoded' }],
    ['another origin', 403, { origin: 'http://evil.example' }],
    ['another port of this machine', 403, { origin: 'http://127.0.0.1:8080' }],
    ['another site', 403, { 'sec-fetch-site': 'cross-site' }],
    ['the same site', 403, { 'sec-fetch-site': 'same-site' }],
    ['a rebound name', 403, { host: 'evil.example' }],
  ])('of %s are rejected', async (_, status, headers) => {
    expect((await post(start(), 'apply', [change], headers)).status).toBe(status)
    expect(applied).toEqual([])
  })

  test.each<[string, readonly unknown[]]>([
    ['no change', []],
    ['a change without a path', [{ ...change, path: [] }]],
    ['a path of other things', [{ ...change, path: [{}] }]],
    ['a long path', [{ ...change, path: Array.from({ length: 17 }, () => 'a') }]],
    ['an unknown field', [{ ...change, force: true }]],
    ['a name of a key with a slash', [{ key: { ...create.key, name: '../x' } }]],
    ['a digest for a key', [{ key: { ...create.key, keyHash: 'sha256:0' } }]],
    ['many changes', Array.from({ length: 33 }, () => change)],
  ])('with %s are rejected', async (_, changes) => {
    expect((await post(start(), 'apply', changes)).status).toBe(400)
    expect(applied).toEqual([])
  })

  test('are limited in size and number', async () => {
    const app = start()
    expect(
      (
        await post(
          app,
          'apply',
          Array.from({ length: 20 }, () => ({ ...change, text: 'x'.repeat(60_000) })),
        )
      ).status,
    ).toBe(413)
    for (let i = 0; i < 60; i++) await post(app, 'preview')
    expect((await post(app, 'apply')).status).toBe(429)
  })
})
