import { execFile } from 'node:child_process'
import { createPublicKey, generateKeyPairSync, randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { verifyAgentCardSignature } from '@a2a-js/sdk'
import { ClientFactory } from '@a2a-js/sdk/client'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { stringify } from 'yaml'
import { startDataplane, type Dataplane } from '../../harness/program/dataplane.ts'
import { findFreePorts } from '../../harness/program/ports.ts'
import { startProgram, type Program } from '../../harness/program/program.ts'

const PYTHON = fileURLToPath(new URL('../../../.tools/a2a-python/bin/python', import.meta.url))
const scriptAt = (name: string): string => fileURLToPath(new URL(name, import.meta.url))
const run = promisify(execFile)

const [ofAgent, ofGateway] = [generateKeyPairSync('ec', { namedCurve: 'P-256' }), generateKeyPairSync('ec', { namedCurve: 'P-256' })]
let directory: string
let agent: Program
let dataplane: Dataplane
let origin: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'a2a-'))
  for (const [name, { privateKey, publicKey }] of Object.entries({ agent: ofAgent, gateway: ofGateway })) {
    await writeFile(join(directory, `${name}.key`), privateKey.export({ type: 'pkcs8', format: 'pem' }))
    await writeFile(join(directory, `${name}.pub`), publicKey.export({ type: 'spki', format: 'pem' }))
  }
  const [port = 0, agentPort = 0] = await findFreePorts(2)
  agent = startProgram({ name: 'agent', command: PYTHON, args: [scriptAt('agent.py'), String(agentPort), join(directory, 'agent.key')] })
  const rewrite = { urlRewrite: { path: { type: 'ReplacePrefixMatch', value: '/' } } }
  const skills = [{ id: 'echo' }, { id: '*', when: 'request.headers["x-group"] == "staff"' }]
  const host = { host: '127.0.0.1', port: agentPort }
  const route = (name: string, a2a: object) => ({
    name,
    matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }],
    filters: rewrite,
    backends: [{ a2a: { ...host, ...a2a } }],
  })
  const signing = { cardSigning: { key: '${file:gateway.key}', keyId: 'gateway' } }
  const file = join(directory, 'config.yaml')
  await writeFile(file, stringify({ binds: [{ port, listeners: [{ name: 'http', routes: [route('signed', { ...signing, skills }), route('plain', {})] }] }] }))
  await agent.waitForLine(/ready/, 60_000)
  dataplane = await startDataplane({ config: { file } })
  origin = `http://localhost:${port}`
})

afterAll(async () => {
  await dataplane?.stop(100)
  await agent?.stop(100)
  await rm(directory, { recursive: true, force: true })
})

const python = async (path: string, binding: string, key: string, ...header: string[]): Promise<unknown> =>
  JSON.parse((await run(PYTHON, [scriptAt('client.py'), `${origin}${path}`, binding, join(directory, key), ...header])).stdout)

describe.each(['JSONRPC', 'HTTP+JSON'])('through the gateway, over %s,', (binding) => {
  test('a client of the Python SDK verifies the signature of the gateway, and the agent responds', async () => {
    expect(await python('/signed/', binding, 'gateway.pub')).toEqual({ skills: ['echo'], texts: ['echo: hellö'] })
    expect(await python('/signed/', binding, 'gateway.pub', 'x-group', 'staff')).toEqual({ skills: ['echo', 'admin'], texts: ['echo: hellö'] })
  })

  test('a client of the JavaScript SDK does too', async () => {
    const keys: string[] = []
    const verify = verifyAgentCardSignature((kid) => {
      keys.push(kid)
      return Promise.resolve(createPublicKey(ofGateway.privateKey))
    })
    const client = await new ClientFactory({ ...new ClientFactory().options, preferredTransports: [binding] }).createFromUrl(`${origin}/signed/`)
    const card = await client.getAgentCard(undefined, verify)
    expect([keys, card.skills.map(({ id }) => id)]).toEqual([['gateway'], ['echo']])
    const parts = [{ content: { $case: 'text', value: 'hello' } }]
    const message = { messageId: randomUUID(), role: 1, parts, contextId: '', taskId: '', metadata: undefined, extensions: [], referenceTaskIds: [] }
    const result = await client.sendMessage({ message } as unknown as Parameters<typeof client.sendMessage>[0])
    expect(JSON.stringify(result)).toContain('echo: hello')
  })
})

test('a client that requires the signature of the agent rejects a card that the gateway changed, signed or not', async () => {
  for (const path of ['/signed/', '/plain/']) await expect(python(path, 'JSONRPC', 'agent.pub')).rejects.toThrow(/InvalidSignaturesError|NoSignatureError/)
})
