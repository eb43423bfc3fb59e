import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { collections, startFakeApi, type FakeApi } from '../../kube/testing.ts'
import { main } from '../proxyctl.ts'

let directory: string
let api: FakeApi
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'proxyctl-keys-'))
  api = await startFakeApi({ install: [collections.secrets] })
  writeFileSync(join(directory, 'config'), api.kubeconfig)
})
afterEach(async () => {
  await api.close()
  rmSync(directory, { recursive: true })
})

async function keys(...args: string[]) {
  let [stdout, stderr] = ['', '']
  const code = await main(['keys', ...args, '--secret', 'shop/keys'], {
    env: { KUBECONFIG: join(directory, 'config') },
    isTerminal: false,
    readInput: () => Promise.resolve(''),
    write: (text) => (stdout += text),
    writeError: (text) => (stderr += text),
  })
  return { code, stdout, stderr }
}
const stored = (): Record<string, unknown> => {
  const { data = {}, stringData = {} } = (api.get(collections.secrets, 'shop', 'keys') ?? {}) as {
    data?: Record<string, string | null>
    stringData?: Record<string, string>
  }
  const decoded = Object.entries(data).flatMap(([name, value]) => (typeof value === 'string' ? [[name, Buffer.from(value, 'base64').toString()]] : []))
  return { ...Object.fromEntries(decoded), ...stringData }
}
const digestOf = (key: string): string => `sha256:${createHash('sha256').update(key).digest('hex')}`
const put = (data: Record<string, string>): void =>
  void api.put(collections.secrets, {
    metadata: { name: 'keys', namespace: 'shop' },
    data: Object.fromEntries(Object.entries(data).map(([name, value]) => [name, Buffer.from(value).toString('base64')])),
  })

describe('keys create', () => {
  test('prints a manifest with the digest, and the key on standard error', async () => {
    const { code, stdout, stderr } = await keys(
      'create',
      'alice',
      '--metadata',
      'team=red',
      '--metadata',
      'models=["gpt-*"]',
      '--expires',
      '2099-01-31T00:00:00Z',
    )
    const key = /: (pxk_[-\w]{43})\n$/.exec(stderr)?.[1] ?? ''
    expect(code).toBe(0)
    expect(parse(stdout)).toEqual({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: 'shop', name: 'keys' },
      stringData: { alice: expect.any(String) },
    })
    expect(JSON.parse((parse(stdout) as { stringData: { alice: string } }).stringData.alice)).toEqual({
      keyHash: digestOf(key),
      expires: '2099-01-31T00:00:00Z',
      metadata: { team: 'red', models: ['gpt-*'] },
    })
    expect(stdout).not.toContain(key)
    expect(api.requests).toEqual([])
  })

  test('with --write creates the Secret, then adds to it, and does not replace a key', async () => {
    const first = await keys('create', 'alice', '--write')
    put({ alice: String(stored()['alice']) })
    const second = await keys('create', 'bob', '--write', '--expires', '90d')
    const [alice, bob] = ['alice', 'bob'].map((name) => JSON.parse(String(stored()[name])) as { keyHash: string; expires?: string })
    expect([alice?.keyHash, bob?.keyHash]).toEqual([digestOf(first.stdout.trim()), digestOf(second.stdout.trim())])
    expect(Date.parse(bob?.expires ?? '')).toBeGreaterThan(Date.now() + 89 * 86_400_000)
    const again = await keys('create', 'alice', '--write')
    expect([again.code, again.stderr]).toEqual([1, 'proxyctl: Secret shop/keys has a key alice already; revoke it first or use another name [PX6012]\n'])
  })

  test.each([
    ['a name with a slash', ['create', 'a/b']],
    ['no name', ['create']],
    ['an expiry in the past', ['create', 'a', '--expires', '2020-01-31T00:00:00Z']],
    ['an expiry that is no time', ['create', 'a', '--expires', 'tomorrow']],
    ['metadata without a value', ['create', 'a', '--metadata', 'team']],
  ])('rejects %s', async (_, args) => {
    expect((await keys(...args)).code).toBe(2)
  })
})

test('keys list shows state and metadata, and no key', async () => {
  put({ a: 'plain-key', b: `{"keyHash":"${digestOf('x')}","expires":"2020-01-01T00:00:00Z","metadata":{"team":"red"}}`, c: '{"key":""}' })
  const { code, stdout } = await keys('list')
  expect(code).toBe(1)
  expect(stdout).toMatch(/^a +valid +key +- +\{\}$/m)
  expect(stdout).toMatch(/^b +expired +digest +2020-01-01T00:00:00.000Z +\{"team":"red"\}$/m)
  expect(stdout).toMatch(/^c +invalid +- +- +has a key that is not a string, or an empty one$/m)
  expect(stdout).not.toContain('plain-key')
})

describe('keys revoke', () => {
  test('prints the command, or with --write removes the key', async () => {
    put({ a: 'k1', b: 'k2' })
    expect((await keys('revoke', 'a')).stdout).toBe(`kubectl patch secret keys -n shop --type=merge -p '{"data":{"a":null}}'\n`)
    expect((await keys('revoke', 'a', '--write')).stdout).toBe('revoked a\n')
    expect(stored()).toEqual({ b: 'k2' })
  })

  test('names the keys of the Secret if there is none of that name', async () => {
    put({ b: 'k2' })
    expect((await keys('revoke', 'a', '--write')).stderr).toBe('proxyctl: Secret shop/keys has no key a; its keys are b [PX6008]\n')
  })
})
