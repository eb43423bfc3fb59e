import { expect, test } from '@jest/globals'
import * as fc from 'fast-check'
import type { EndpointState } from '../../net/upstream/balancer/balancer.ts'
import { hashText } from '../../net/upstream/balancer/hash.ts'
import { ServerChooser } from './choose.ts'
import { readPrompt, type Prompt } from './prompt.ts'
import { ModelServer } from './server.ts'

const serverAt = (label: string): ModelServer =>
  new ModelServer({ address: label, port: 80, label, hash: hashText(label), health: 1, failures: 0, evictions: 0 } as unknown as EndpointState)
const serversOf = (count: number): ModelServer[] => Array.from({ length: count }, (_, at) => serverAt(`10.0.0.${at}:80`))
const chat = (system: string, question: string, model = 'm'): Prompt =>
  readPrompt(
    Buffer.from(
      JSON.stringify({
        model,
        stream: true,
        messages: [
          { role: 'system', content: system },
          { role: 'user', content: question },
        ],
      }),
    ),
  )
const long = (name: string): string => `${name} `.repeat(24_000 / (name.length + 1))

test('requests with one long prefix go to one server, until it has much more to read than others', () => {
  const chooser = new ServerChooser()
  const servers = serversOf(8)
  const first = chooser.pick(chat(long('a'), 'one'), servers)
  expect(first).toMatchObject({ matched: 0 })
  for (let nth = 0; nth < 5; nth++) expect(chooser.pick(chat(long('a'), `question ${nth}`), servers)?.server).toBe(first?.server)
  expect(chooser.pick(chat(long('a'), 'two'), servers)?.matched).toBeGreaterThan(5000)
  first?.server.begin(50_000)
  expect(chooser.pick(chat(long('a'), 'three'), servers)?.server).not.toBe(first?.server)
  first?.server.read(50_000)
  expect(chooser.pick(chat(long('a'), 'four'), servers)?.server).toBe(first?.server)
})

test('gateways that share nothing agree on the server of a prefix that none of them has seen', () => {
  const servers = serversOf(16)
  for (const name of ['a', 'b', 'c', 'd', 'e'])
    expect(new ServerChooser().pick(chat(long(name), 'one'), servers)?.server).toBe(new ServerChooser().pick(chat(long(name), 'other'), servers)?.server)
})

test('the same prefix for another model is another prefix', () => {
  const chooser = new ServerChooser()
  const servers = serversOf(8)
  chooser.pick(chat(long('a'), 'one', 'm1'), servers)
  expect(chooser.pick(chat(long('a'), 'one', 'm2'), servers)?.matched).toBe(0)
})

test('a prefix counts until its server has read as many other tokens as its cache holds', () => {
  const chooser = new ServerChooser()
  const servers = serversOf(1)
  servers[0]?.store({ waiting: 0, running: 0, kvUse: 0, cacheTokens: 20_000, adapters: undefined }, 1)
  chooser.pick(chat(long('a'), 'one'), servers)
  for (const name of ['b', 'c']) chooser.pick(chat(long(name), 'one'), servers)
  expect(chooser.pick(chat(long('a'), 'two'), servers)?.matched).toBeGreaterThan(5000)
  for (const name of ['d', 'e', 'f', 'g']) chooser.pick(chat(long(name), 'one'), servers)
  expect(chooser.pick(chat(long('a'), 'three'), servers)?.matched).toBe(0)
})

test('without prompts, the server with the least load is picked', () => {
  const chooser = new ServerChooser()
  const servers = serversOf(4)
  const empty = readPrompt(Buffer.alloc(0))
  for (let nth = 0; nth < 40; nth++) chooser.pick(empty, servers)?.server.begin(1000)
  expect(servers.map(({ requests }) => requests)).toEqual([10, 10, 10, 10])
})

test('an adapter goes to a server that has it, in a pool whose servers report adapters', () => {
  const servers = serversOf(8)
  for (const server of servers) server.store({ waiting: 0, running: 1, kvUse: 0, cacheTokens: undefined, adapters: server === servers[5] ? ['lora-1'] : [] }, 1)
  expect(new ServerChooser().pick(chat('short', 'one', 'lora-1'), servers)?.server).toBe(servers[5])
})

test('a server that failed is the last choice for a time, and a server whose requests fail fast does not attract all', () => {
  const chooser = new ServerChooser()
  const servers = serversOf(2)
  servers[0]?.strike(1000)
  for (let nth = 0; nth < 20; nth++) {
    const pick = chooser.pick(readPrompt(Buffer.alloc(0)), servers, 2000)
    expect(pick?.server).toBe(servers[1])
    pick?.server.begin(1000)
  }
  expect(chooser.pick(readPrompt(Buffer.alloc(0)), servers, 10_000)?.server).toBe(servers[0])
  expect(
    chooser.pick(
      chat('a', 'b'),
      [servers[0]].flatMap((one) => one ?? []),
      2000,
    )?.server,
  ).toBe(servers[0])
})

test('a server that reports that it is idle gets no more than its own requests allow, whatever others report', () => {
  fc.assert(
    fc.property(
      fc.array(fc.record({ waiting: fc.double(), running: fc.double(), kvUse: fc.double(), cacheTokens: fc.double() }), { minLength: 4, maxLength: 4 }),
      (reports) => {
        const chooser = new ServerChooser()
        const servers = serversOf(5)
        for (const [at, report] of reports.entries()) servers[at + 1]?.store({ ...report, adapters: undefined }, 1)
        const limit = 400
        for (let nth = 0; nth < limit; nth++) chooser.pick(readPrompt(Buffer.alloc(0)), servers)?.server.begin(0)
        const cheapest = servers.map((server) => server.requests)
        // Honest servers without load share what is sent.
        expect(cheapest.reduce((sum, requests) => sum + requests, 0)).toBe(limit)
        for (const server of servers) expect(server.kvUse >= 0 && server.kvUse <= 1 && server.cacheTokens > 0 && server.waiting >= 0).toBe(true)
      },
    ),
    { numRuns: 50 },
  )
  const servers = serversOf(4)
  const chooser = new ServerChooser()
  for (const server of servers.slice(1)) server.store({ waiting: 0, running: 20, kvUse: 0.5, cacheTokens: undefined, adapters: undefined }, 1)
  for (let nth = 0; nth < 100; nth++) chooser.pick(readPrompt(Buffer.alloc(0)), servers)?.server.begin(0)
  expect(servers[0]?.requests).toBeLessThan(50)
})

test('prompts of any length have a bounded number of blocks, and the memory of a pool is bounded', () => {
  expect(readPrompt(Buffer.alloc(4_000_000, 'a')).hashes.length).toBeLessThan(200)
  const chooser = new ServerChooser()
  const servers = serversOf(2)
  for (let nth = 0; nth < 1500; nth++) chooser.pick(readPrompt(Buffer.from(`{"messages":["${nth}${'x'.repeat(8000)}"]}`)), servers)
  expect(chooser.prefixes.size).toBeLessThanOrEqual(16_384)
})
