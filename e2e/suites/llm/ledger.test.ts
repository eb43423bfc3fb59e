import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { startMockProvider, type MockProvider } from '../../harness/llm/provider.ts'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { waitUntil } from '../../harness/wait.ts'

let directory: string
let mock: MockProvider
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'llm-ledger-'))
  mock = await startMockProvider({})
})
afterAll(async () => {
  await mock.close()
  await rm(directory, { recursive: true, force: true })
})

/** A config file whose clients alice and bob have API keys. */
async function writeConfig(name: string, ledger: object, port: number): Promise<string> {
  const file = join(directory, `${name}.yaml`)
  const key = (of: string) => JSON.stringify({ key: `key-of-${of}`, metadata: { team: 'red' } })
  const config = {
    config: { ledger },
    llm: {
      port,
      addresses: ['127.0.0.1'],
      policies: { apiKeyAuthentication: { secretRef: { secret: 'opaque/ns/clients' } } },
      models: {
        'gpt-4o': {
          openai: { apiKey: 'provider-key', url: `${mock.url}/v1` },
          policies: {
            ai: {
              prices: { 'gpt-4o*': { input: '1000000', output: '0' } },
              promptGuard: {
                request: [{ regex: { matches: ['forbidden'], action: 'Reject' } }, { regex: { matches: ['s3cr3t'], action: 'Mask' } }],
                response: [{ regex: { matches: ['private'], action: 'Mask' } }],
              },
            },
          },
        },
      },
    },
    secrets: [{ key: 'opaque/ns/clients', type: 'opaque', data: { alice: key('alice'), bob: key('bob') } }],
  }
  await writeFile(file, JSON.stringify(config))
  return file
}

async function chat(port: number, client: string, content: string, stream = false): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer key-of-${client}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-4o', stream, messages: [{ role: 'user', content }] }),
  })
  await response.text()
  return response.status
}

describe('the ledger of a data plane', () => {
  test.each(['1', '2'])('has the LLM requests of all %s threads, also those right before the end', async (workers) => {
    const [port = 0] = await findFreePorts(1)
    const path = join(directory, `${workers}.db`)
    const dataplane: Dataplane = await startDataplane({
      config: { file: await writeConfig(`with-${workers}`, { sqlite: { path }, user: 'apiKey.metadata.team + "/" + request.host' }, port) },
      env: { WORKERS: workers },
    })
    try {
      for (const client of ['alice', 'bob', 'alice', 'bob']) expect(await chat(port, client, 'hello you', client === 'bob')).toBe(200)
      expect(await chat(port, 'alice', 'forbidden')).toBe(403)
      expect(await chat(port, 'eve', 'hello')).toBe(401)
      const report = async () =>
        (await (await dataplane.admin('/api/v1/spend?by=key,status,guard')).json()) as { rows: { group: unknown[]; requests: number }[] }
      await waitUntil('the report has all requests', async () => (await report()).rows.reduce((sum, { requests }) => sum + requests, 0) === 5)
      const { rows } = await report()
      expect(rows.map(({ group, requests }) => [...group, requests])).toEqual(
        expect.arrayContaining([
          ['alice', '200', 'Allow', 2],
          ['bob', '200', 'Allow', 2],
          ['alice', '403', 'Reject', 1],
        ]),
      )
      expect(await dataplane.metrics()).toContain('proxy_ledger_rows_stored_total 5\n')
      expect(await chat(port, 'alice', 'the last one')).toBe(200)
    } finally {
      await dataplane.stop(30_000)
    }
    const stored = new DatabaseSync(path, { readOnly: true })
    const all = stored.prepare('SELECT * FROM requests ORDER BY time').all()
    stored.close()
    expect(all).toHaveLength(6)
    expect(all[0]).toMatchObject({
      protocol: 'llm',
      key: 'alice',
      user: `red/127.0.0.1:${port}`,
      team: 'red',
      requested_model: 'gpt-4o',
      status: 200,
      reason: 'Upstream',
      cost: all[0]?.['input_tokens'],
    })
    expect(all[0]?.['input_tokens']).toBeGreaterThan(0)
    expect(all[1]?.['first_token_ms']).toEqual(expect.any(Number))
    expect(JSON.stringify(all)).not.toMatch(/key-of|hello|forbidden|last one/)
  })

  test('has bodies if it is told to, as the guards let them through', async () => {
    const [port = 0] = await findFreePorts(1)
    const path = join(directory, 'bodies.db')
    const file = await writeConfig('bodies', { sqlite: { path }, bodies: { maxBytes: 500 } }, port)
    const dataplane = await startDataplane({ config: { file }, env: { WORKERS: '2' } })
    try {
      for (const stream of [false, true]) expect(await chat(port, 'alice', 'a s3cr3t and a private word', stream)).toBe(200)
      expect(await chat(port, 'alice', 'forbidden')).toBe(403)
      expect(await chat(port, 'alice', `'); DELETE FROM requests; --\0 ${'x'.repeat(2000)}`)).toBe(200)
    } finally {
      await dataplane.stop(30_000)
    }
    const stored = new DatabaseSync(path, { readOnly: true })
    const all = stored.prepare('SELECT request_body, response_body FROM requests ORDER BY time').all()
    stored.close()
    for (const row of all.slice(0, 2)) {
      expect(row['request_body']).toMatch(/a <[^>]*> and a private word/)
      expect(row['response_body']).toMatch(/"content":"echo: a <[^>]*> and a <[^>]*> word"/)
    }
    expect(JSON.stringify(all)).not.toMatch(/key-of|s3cr3t|forbidden/)
    expect(all[2]).toMatchObject({ request_body: null, response_body: null })
    expect(all[3]?.['request_body']).toMatch(/^\{.*DELETE FROM requests; --\\u0000 x+$/)
    expect(all[3]?.['request_body']).toHaveLength(500)
  })

  test('ends the start with the cause if its file cannot be opened', async () => {
    const [port = 0] = await findFreePorts(1)
    const path = join(directory, 'missing', 'ledger.db')
    const file = await writeConfig('missing', { sqlite: { path } }, port)
    await expect(startDataplane({ config: { file } })).rejects.toThrow(
      /config\.ledger\.sqlite\.path is ".*": ENOENT: .*; name a file in a directory.*\[PX4001\]/,
    )
  })
})
